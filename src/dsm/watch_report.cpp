// SPDX-License-Identifier: Apache-2.0
#include "dsm/watch_report.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <utility>

namespace hanare::dsm {
namespace {

constexpr size_t kBlocksShown = 24;
constexpr size_t kRangesShown = 3;

[[gnu::format(printf, 2, 3)]] void print(std::string& text, const char* format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text += line;
}

unsigned long long number(uint64_t value) { return value; }

// A block as all tasks have it.
struct Block {
    uint32_t number = 0;
    uint64_t cost = 0;
    std::vector<std::pair<uint32_t, const BlockRecord*>> parts;  // by task
};

bool has_written(const BlockRecord& record) {
    return std::ranges::any_of(record.written, [](uint64_t word) { return word != 0; });
}

bool overlap(const BlockRecord& one, const BlockRecord& other) {
    for (size_t word = 0; word < one.written.size(); ++word) {
        if ((one.written[word] & other.written[word]) != 0) return true;
    }
    return false;
}

enum class Kind { kRead, kOneWriter, kSharedWrites, kFalseSharing };

Kind kind_of(const Block& block) {
    size_t writers = 0;
    bool overlaps = false;
    for (size_t i = 0; i < block.parts.size(); ++i) {
        if (!has_written(*block.parts[i].second)) continue;
        ++writers;
        for (size_t j = 0; j < i; ++j) {
            overlaps |= overlap(*block.parts[i].second, *block.parts[j].second);
        }
    }
    if (writers < 2) return writers == 0 ? Kind::kRead : Kind::kOneWriter;
    return overlaps ? Kind::kSharedWrites : Kind::kFalseSharing;
}

const char* text_of(Kind kind) {
    switch (kind) {
        case Kind::kRead: return "read";
        case Kind::kOneWriter: return "one writer";
        case Kind::kSharedWrites: return "the same bytes are written by several";
        case Kind::kFalseSharing: return "FALSE SHARING: several write to bytes of their own";
    }
    return "";
}

// "0-7, 512-519 and 3 more".
std::string ranges_text(const BlockRecord& record) {
    const auto is_set = [&](size_t byte) {
        return byte < kBlockBytes && (record.written[byte / 64] >> byte % 64 & 1) != 0;
    };
    std::string text;
    size_t ranges = 0;
    for (size_t byte = 0; byte < kBlockBytes; ++byte) {
        if (!is_set(byte)) continue;
        const size_t begin = byte;
        while (is_set(byte + 1)) ++byte;
        if (ranges++ >= kRangesShown) continue;
        print(text, "%s%zu-%zu", text.empty() ? "" : ", ", begin, byte);
    }
    if (ranges > kRangesShown) print(text, " and %zu more", ranges - kRangesShown);
    return text;
}

std::vector<Block> merge(const std::vector<TaskNotes>& all) {
    std::map<uint32_t, Block> blocks;
    for (uint32_t task = 0; task < all.size(); ++task) {
        for (const BlockRecord& record : all[task].blocks) {
            Block& block = blocks[record.block];
            block.number = record.block;
            block.cost += record.cost();
            block.parts.emplace_back(task, &record);
        }
    }
    std::vector<Block> sorted;
    for (auto& [number, block] : blocks) sorted.push_back(std::move(block));
    std::ranges::sort(sorted, [](const Block& one, const Block& other) {
        return one.cost != other.cost ? one.cost > other.cost : one.number < other.number;
    });
    return sorted;
}

std::string where(uint64_t offset, const std::vector<Region>& regions) {
    std::string text;
    for (size_t i = 0; i < regions.size(); ++i) {
        const RegionRecord& region = regions[i].record;
        if (region.offset >= offset + kBlockBytes || offset >= region.offset + region.bytes) {
            continue;
        }
        // Small ones share a block.
        if (offset < region.offset) {
            print(text, "%sbegin of allocation %zu", text.empty() ? "" : ", ", i + 1);
        } else {
            print(text, "%sallocation %zu + %llu", text.empty() ? "" : ", ", i + 1,
                  number(offset - region.offset));
        }
        if (text.size() > 80) break;
    }
    return text.empty() ? "freed meanwhile" : text;
}

void add_block(std::string& text, const Block& block, const std::vector<TaskNotes>& all,
               const Segment& segment, const std::vector<Region>& regions) {
    const uint64_t offset = uint64_t{block.number} * kBlockBytes;
    print(text, "\n%p, %s: %s\n", static_cast<void*>(segment.base() + offset),
          where(offset, regions).c_str(), text_of(kind_of(block)));
    for (const auto& [task, record] : block.parts) {
        print(text,
              "  task %u: %u read faults, %u write faults, fetched %u times, %u diffs of %llu "
              "bytes\n",
              task, record->reads, record->writes, record->fetched, record->diffs,
              number(record->diff_bytes));
        if (has_written(*record)) {
            text += "    writes bytes " + ranges_text(*record);
            if (record->write_site != 0) {
                text += std::string(" at ") + all[task].place(record->write_site);
            }
            text += '\n';
        }
        if (record->read_site != 0) {
            text += std::string("    reads at ") + all[task].place(record->read_site) + '\n';
        }
    }
}

void add_tasks(std::string& text, const std::vector<TaskNotes>& all) {
    text += "\ntask";
    for (uint32_t task = 0; task < all.size(); ++task) print(text, "\t%u", task);
    text += '\n';
    for (size_t i = 0; i < kWatchedCounts; ++i) {
        text += kWatchedCountNames[i];
        for (const TaskNotes& notes : all) print(text, "\t%llu", number(notes.counts[i]));
        text += '\n';
    }
}

void add_regions(std::string& text, const Segment& segment, const std::vector<Region>& regions) {
    text +=
        "\nallocation\taddress\tbytes\tread faults\twrite faults\tfetched\tdropped\tdiffs\t"
        "diff bytes\n";
    for (size_t i = 0; i < regions.size(); ++i) {
        const auto& [record, costs] = regions[i];
        print(text, "%zu\t%p\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\n", i + 1,
              static_cast<void*>(segment.base() + record.offset), number(record.bytes),
              number(costs.reads), number(costs.writes), number(costs.fetched),
              number(costs.dropped), number(costs.diffs), number(costs.diff_bytes));
    }
}

void add_sites(std::string& text, const std::vector<TaskNotes>& all) {
    text += "\nfaults by code\n";
    for (uint32_t task = 0; task < all.size(); ++task) {
        for (const SiteRecord& site : all[task].sites) {
            print(text, "  task %u: %llu reads, %llu writes at ", task, number(site.reads),
                  number(site.writes));
            text += std::string(all[task].place(site.place)) + '\n';
        }
    }
}

}  // namespace

std::string watch_report(const std::vector<TaskNotes>& all, const std::vector<Region>& regions,
                         const Segment& segment) {
    std::string text;
    const std::vector<Block> blocks = merge(all);
    const auto is_false = [](const Block& block) { return kind_of(block) == Kind::kFalseSharing; };
    const auto shared_falsely = std::ranges::count_if(blocks, is_false);
    print(text, "shared memory of %zu tasks: %zu of the blocks that cost most, ", all.size(),
          blocks.size());
    print(text, "false sharing in %zu\n", static_cast<size_t>(shared_falsely));
    if (blocks.empty()) {
        text +=
            "nothing was caught: tasks of one machine have their memory in common "
            "(HANARE_DSM_SHARED=off treats them as on several)\n";
    }
    add_tasks(text, all);
    add_regions(text, segment, regions);
    size_t shown = 0;
    // What can be mended first.
    for (const bool wants_false : {true, false}) {
        for (const Block& block : blocks) {
            if (is_false(block) != wants_false || shown >= kBlocksShown) continue;
            add_block(text, block, all, segment, regions);
            ++shown;
        }
    }
    add_sites(text, all);
    return text;
}

}  // namespace hanare::dsm
