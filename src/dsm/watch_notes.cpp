// SPDX-License-Identifier: Apache-2.0
#include "dsm/watch_notes.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <utility>

namespace hanare::dsm {
namespace {

constexpr size_t kBlocksOfTask = 96;  // those that cost most in a task are sent
constexpr size_t kRegionsMax = 64;
constexpr size_t kSitesOfTask = 12;

}  // namespace

const char* const kWatchedCountNames[kWatchedCounts] = {
    "read faults",   "write faults", "fetched blocks", "dropped blocks", "twins",
    "diffs",         "diff bytes",   "messages",       "message bytes",  "barrier messages",
    "barrier bytes", "barriers",     "locks",          "from others",    "wait ns"};

namespace {

// ---- what a task has

std::array<uint64_t, kWatchedCounts> counts_of(const Counters& from) {
    const Counters::Count* const all[] = {&from.read_faults,    &from.write_faults,
                                          &from.fetched_blocks, &from.invalidated_blocks,
                                          &from.twins,          &from.diffs,
                                          &from.diff_bytes,     &from.messages,
                                          &from.message_bytes,  &from.barrier_messages,
                                          &from.barrier_bytes,  &from.barriers,
                                          &from.locks,          &from.remote_locks,
                                          &from.wait_ns};
    std::array<uint64_t, kWatchedCounts> counts{};
    std::ranges::transform(all, counts.begin(), [](const auto* count) { return count->load(); });
    return counts;
}

// Finds each place of code once.
class Places {
public:
    explicit Places(const Watch& watch, std::vector<std::string>& places)
        : watch_(watch), places_(places) {}

    // Of a site as blocks have it; 0: none.
    uint32_t of(uint32_t site) {
        if (site == Watch::kNoSite) return 0;
        const auto [known, is_new] = numbers_.try_emplace(site, 0);
        if (!is_new) return known->second;
        const Watch::Site& which = watch_.site(site - 1);
        std::string text = place_of_code(which.instruction);
        // Behind the call that it returns to.
        if (which.caller != 0) text = place_of_code(which.caller - 1) + " in " + text;
        places_.push_back(std::move(text));
        return known->second = static_cast<uint32_t>(places_.size());
    }

private:
    const Watch& watch_;
    std::vector<std::string>& places_;
    std::map<uint32_t, uint32_t> numbers_;
};

BlockRecord record_of(const Watch& watch, uint32_t block) {
    const Watch::BlockNotes& notes = watch.block(block);
    BlockRecord record = {.block = block,
                          .reads = notes.reads,
                          .writes = notes.writes,
                          .fetched = notes.fetched,
                          .dropped = notes.dropped,
                          .diffs = notes.diffs,
                          .diff_bytes = notes.diff_bytes,
                          .read_site = notes.read_site,
                          .write_site = notes.write_site,
                          .written = {}};
    return record;
}

TaskNotes notes_of(const Watch& watch, const Counters& counters) {
    TaskNotes notes = {.counts = counts_of(counters), .blocks = {}, .sites = {}, .places = {}};
    for (uint32_t block = 0; block < watch.end(); ++block) {
        const BlockRecord record = record_of(watch, block);
        if (record.cost() > 0) notes.blocks.push_back(record);
    }
    std::ranges::sort(notes.blocks, std::ranges::greater(), &BlockRecord::cost);
    if (notes.blocks.size() > kBlocksOfTask) notes.blocks.resize(kBlocksOfTask);
    Places places(watch, notes.places);
    for (BlockRecord& record : notes.blocks) {
        record.read_site = places.of(record.read_site);
        record.write_site = places.of(record.write_site);
        std::copy_n(watch.written(record.block), record.written.size(), record.written.begin());
    }
    for (uint32_t site = 1; site <= Watch::kSitesMax; ++site) {
        const Watch::Site& which = watch.site(site - 1);
        if (which.key != 0) notes.sites.push_back({which.reads, which.writes, site, 0});
    }
    std::ranges::sort(notes.sites, std::ranges::greater(),
                      [](const SiteRecord& site) { return site.reads + site.writes; });
    if (notes.sites.size() > kSitesOfTask) notes.sites.resize(kSitesOfTask);
    for (SiteRecord& site : notes.sites) site.place = places.of(site.place);
    return notes;
}

// ---- as bytes

template <typename T>
void put(std::vector<std::byte>& bytes, std::span<const T> items) {
    const auto count = static_cast<uint64_t>(items.size());
    const auto head = std::as_bytes(std::span(&count, 1));
    bytes.insert(bytes.end(), head.begin(), head.end());
    const auto body = std::as_bytes(items);
    bytes.insert(bytes.end(), body.begin(), body.end());
}

// False: there are not so many.
template <typename T>
bool take(std::span<const std::byte>& bytes, std::vector<T>& items) {
    uint64_t count = 0;
    if (bytes.size() < sizeof count) return false;
    std::memcpy(&count, bytes.data(), sizeof count);
    bytes = bytes.subspan(sizeof count);
    if (count > bytes.size() / sizeof(T)) return false;
    items.resize(count);
    if (count > 0) std::memcpy(items.data(), bytes.data(), count * sizeof(T));
    bytes = bytes.subspan(count * sizeof(T));
    return true;
}

std::vector<std::byte> bytes_of(const TaskNotes& notes) {
    std::vector<std::byte> bytes;
    put<uint64_t>(bytes, notes.counts);
    put<BlockRecord>(bytes, notes.blocks);
    put<SiteRecord>(bytes, notes.sites);
    std::string places;
    for (const std::string& place : notes.places) places += place + '\n';
    put<char>(bytes, places);
    return bytes;
}

Result<TaskNotes> notes_from(std::span<const std::byte> bytes) {
    TaskNotes notes = {};
    std::vector<uint64_t> counts;
    std::vector<char> places;
    if (!take(bytes, counts) || counts.size() != kWatchedCounts || !take(bytes, notes.blocks) ||
        !take(bytes, notes.sites) || !take(bytes, places)) {
        return fail(HANARE_STATUS_CORRUPT, "notes of another task cannot be read");
    }
    std::ranges::copy(counts, notes.counts.begin());
    std::string place;
    for (const char c : places) {
        if (c != '\n') {
            place += c;
        } else {
            notes.places.push_back(std::exchange(place, {}));
        }
    }
    return notes;
}

}  // namespace

Result<std::vector<TaskNotes>> gather_notes(const Watch& watch, const WatchedTask& task,
                                            job::Group& group, uint64_t deadline_ns) {
    std::vector<std::byte> bytes = bytes_of(notes_of(watch, task.counters));
    const uint64_t size = bytes.size();
    std::vector<uint64_t> sizes(task.size);
    HANARE_TRY(group.allgather(std::as_bytes(std::span(&size, 1)),
                               std::as_writable_bytes(std::span(sizes)), deadline_ns));
    const uint64_t most = std::ranges::max(sizes);
    bytes.resize(most);
    std::vector<std::byte> all(most * task.size);
    HANARE_TRY(group.allgather(bytes, all, deadline_ns));
    std::vector<TaskNotes> notes;
    for (uint32_t rank = 0; rank < task.size; ++rank) {
        HANARE_TRY_ASSIGN(auto one, notes_from(std::span(all).subspan(rank * most, most)));
        notes.push_back(std::move(one));
    }
    return notes;
}

Result<std::vector<Region>> gather_regions(const Watch& watch, const WatchedTask& task,
                                           job::Group& group, uint64_t deadline_ns) {
    std::array<RegionRecord, kRegionsMax> records{};
    if (task.heap != nullptr) {
        auto used = task.heap->used();
        std::ranges::sort(used, std::ranges::greater(),
                          [](const auto& range) { return range.second; });
        if (used.size() > records.size()) used.resize(records.size());
        std::ranges::sort(used);
        std::ranges::transform(used, records.begin(), [](const auto& range) {
            return RegionRecord{range.first, range.second};
        });
    }
    HANARE_TRY(group.broadcast(std::as_writable_bytes(std::span(records)), 0, deadline_ns));
    std::array<RegionCosts, kRegionsMax> own{};
    for (size_t i = 0; i < records.size() && records[i].bytes > 0; ++i) {
        const uint64_t first = records[i].offset / kBlockBytes;
        const uint64_t end = (records[i].offset + records[i].bytes + kBlockBytes - 1) / kBlockBytes;
        for (uint64_t block = first; block < std::min<uint64_t>(end, watch.end()); ++block) {
            const BlockRecord notes = record_of(watch, static_cast<uint32_t>(block));
            own[i].reads += notes.reads;
            own[i].writes += notes.writes;
            own[i].fetched += notes.fetched;
            own[i].dropped += notes.dropped;
            own[i].diffs += notes.diffs;
            own[i].diff_bytes += notes.diff_bytes;
        }
    }
    std::vector<std::array<RegionCosts, kRegionsMax>> all(task.size);
    HANARE_TRY(group.allgather(std::as_bytes(std::span(own)),
                               std::as_writable_bytes(std::span(all)), deadline_ns));
    std::vector<Region> regions;
    for (size_t i = 0; i < records.size() && records[i].bytes > 0; ++i) {
        Region region = {records[i], {}};
        for (const auto& of_task : all) {
            region.costs.reads += of_task[i].reads;
            region.costs.writes += of_task[i].writes;
            region.costs.fetched += of_task[i].fetched;
            region.costs.dropped += of_task[i].dropped;
            region.costs.diffs += of_task[i].diffs;
            region.costs.diff_bytes += of_task[i].diff_bytes;
        }
        regions.push_back(region);
    }
    return regions;
}

}  // namespace hanare::dsm
