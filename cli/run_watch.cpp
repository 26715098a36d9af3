// SPDX-License-Identifier: Apache-2.0
#include "cli/run_watch.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <optional>
#include <utility>

#include "base/units.hpp"
#include "sys/clock.hpp"
#include "sys/process_end.hpp"
#include "sys/process_namespace.hpp"
#include "sys/process_search.hpp"
#include "sys/shared_memory.hpp"

namespace hanare::cli {
namespace {

using telemetry::RunPage;
using telemetry::RunProcess;
using telemetry::RunRow;

// Beside blocks a pool has tables.
constexpr uint64_t kTablesOfEachBytes = 4 * kMiB;
constexpr uint64_t kTablesPerCent = 3;

// Never below zero, whatever a process has left there.
void subtract(std::atomic<uint64_t>& value, uint64_t amount) {
    uint64_t before = value.load();
    while (!value.compare_exchange_weak(before, before - std::min(before, amount))) {
    }
}

std::string text_of(const std::array<std::atomic<char>, 16>& characters) {
    std::string text;
    for (const std::atomic<char>& character : characters) {
        const char c = character.load(std::memory_order_relaxed);
        if (c == '\0') break;
        text += c;
    }
    return text;
}

ProcessFigures figures_of(const RunRow& row) {
    ProcessFigures figures;
    figures.process_id = row.process.load().id;
    figures.command = text_of(row.command);
    figures.has_ended = row.state.load() == RunRow::kEnded;
#define HANARE_RUN_FIELD(name, text) figures.name = row.name.load(std::memory_order_relaxed);
    HANARE_RUN_FIGURE_MAP(HANARE_RUN_FIELD)
#undef HANARE_RUN_FIELD
    return figures;
}

// What has ended holds nothing any more; peaks of several processes are not of one moment.
void add_to(RunTotals& totals, ProcessFigures figures) {
    ++totals.processes;
    if (figures.has_ended) figures.far_bytes = figures.used_bytes = figures.local_bytes = 0;
    const uint64_t far_peak = std::max(totals.far_bytes_peak, figures.far_bytes_peak);
    const uint64_t used_peak = std::max(totals.used_bytes_peak, figures.used_bytes_peak);
    const uint64_t local_peak = std::max(totals.local_bytes_peak, figures.local_bytes_peak);
#define HANARE_RUN_FIELD(name, text) totals.name += figures.name;
    HANARE_RUN_FIGURE_MAP(HANARE_RUN_FIELD)
#undef HANARE_RUN_FIELD
    totals.far_bytes_peak = far_peak;
    totals.used_bytes_peak = used_peak;
    totals.local_bytes_peak = local_peak;
}

}  // namespace

Result<RunWatch> RunWatch::start(uint64_t budget_bytes, bool with_maps) {
    constexpr size_t kBytes = round_up(sizeof(RunPage), kOsPageBytes);
    RunWatch watch;
    watch.self_ = {.id = getpid(), .name_space = static_cast<uint32_t>(sys::process_namespace())};
    HANARE_TRY_ASSIGN(watch.memory_, sys::create_shared_memory(kBytes));
    HANARE_TRY_ASSIGN(watch.mapping_, sys::Mapping::reserve(kBytes, kOsPageBytes));
    HANARE_TRY(sys::map_shared(watch.mapping_, watch.memory_));
    // As it begins: all zeros but these, and pages that nobody writes to take no time.
    watch.page_ = reinterpret_cast<RunPage*>(watch.mapping_.address());
    watch.page_->magic = RunPage::kMagic;
    watch.page_->bytes = sizeof(RunPage);
    watch.page_->budget_bytes = budget_bytes;
    watch.page_->wants_maps = with_maps ? 1 : 0;
    watch.page_->launcher = watch.self_;
    watch.page_->looked_ns.store(sys::now_ns());
    return watch;
}

std::string RunWatch::page_path() const {
    return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(memory_.number());
}

void RunWatch::look() {
    page_->looked_ns.store(sys::now_ns());
    if (page_->processes.load() == 0) return;
    const std::span<RunRow> used = page_->used_rows();
    if (rows_.size() < used.size()) rows_.resize(used.size());
    for (size_t i = 0; i < rows_.size(); ++i) look_at(page_->rows[i], rows_[i]);
    for (telemetry::RunChild& child : page_->children) look_at(child);
    add_up();
}

void RunWatch::look_at(RunRow& shared, Row& row) {
    const bool is_free = shared.state.load() == RunRow::kFree;
    const RunProcess name = is_free ? RunProcess() : shared.process.load();
    if (row.name != name) retire(row);
    if (name.id == 0) return;
    row.name = name;
    const bool may_need_us = shared.state.load() == RunRow::kLive || shared.shares.load() != 0;
    // Another may have taken the row meanwhile.
    if (may_need_us && is_dead(row, name) && shared.process.load() == name) take_out(shared);
    row.last = figures_of(shared);
    if (row.last.has_ended) row.process.close();
}

// Of children that end before they have a row nothing is set aside any more.  Who forked in another
// namespace sees to that itself.
void RunWatch::look_at(telemetry::RunChild& child) const {
    RunProcess name = child.process.load();
    Row row;
    if (name.id == 0 || !self_.can_tell_of(name) || !is_dead(row, name)) return;
    child.process.compare_exchange_strong(name, RunProcess());
}

// What the process of the row had is remembered, of very many processes as a sum only.
void RunWatch::retire(Row& row) {
    if (row.last.process_id != 0) {
        row.last.has_ended = true;
        if (former_.size() < kFormerMax) {
            former_.push_back(std::move(row.last));
        } else {
            add_to(left_out_, row.last);
        }
    }
    row = Row();
}

bool RunWatch::is_dead(Row& row, const RunProcess& name) const {
    if (!row.process.is_open()) {
        if (row.is_unknown || name.name_space == 0) return false;
        std::optional<pid_t> process = name.id;
        if (!self_.can_tell_of(name)) process = sys::find_process(name.name_space, name.id);
        row.is_unknown = !process;
        if (!process) return false;
        const int error = *process == 0 ? ESRCH : sys::open_process(*process, row.process);
        if (error != 0) return error == ESRCH || !sys::exists(*process);
    }
    return sys::has_ended(row.process);
}

// Whoever wins one of the exchanges does what goes with it, and nobody does it twice.
void RunWatch::take_out(RunRow& shared) {
    uint32_t state = RunRow::kLive;
    if (shared.state.compare_exchange_strong(state, RunRow::kEnded)) {
        subtract(page_->far_bytes, shared.far_bytes.load());
    }
    uint32_t shares = 1;
    if (shared.shares.compare_exchange_strong(shares, 0)) page_->sharers.fetch_sub(1);
}

void RunWatch::add_up() {
    const RunTotals before = totals_;
    totals_ = left_out_;
    uint64_t live = 0;
    uint64_t largest_bytes = 0;
    for (const ProcessFigures& figures : former_) add_to(totals_, figures);
    for (const Row& row : rows_) {
        if (row.last.process_id == 0) continue;
        add_to(totals_, row.last);
        if (row.last.has_ended) continue;
        ++live;
        largest_bytes = std::max(largest_bytes, row.last.used_bytes);
    }
    totals_.sharers = page_->sharers.load();
    totals_.budget_bytes = page_->budget_bytes;
    totals_.processes = std::max<uint64_t>(totals_.processes, page_->processes.load());
    totals_.far_bytes_peak = std::max({totals_.far_bytes_peak, totals_.far_bytes,
                                       page_->far_bytes_peak.load(), before.far_bytes_peak});
    totals_.used_bytes_peak =
        std::max({totals_.used_bytes_peak, totals_.used_bytes, before.used_bytes_peak});
    totals_.local_bytes_peak =
        std::max({totals_.local_bytes_peak, totals_.local_bytes, before.local_bytes_peak});
    // Everybody gets an equal part, so the largest process decides.
    const uint64_t blocks = std::max(totals_.used_bytes_peak, largest_bytes * live);
    const auto with_tables = [live](uint64_t bytes) {
        return bytes == 0 ? 0 : bytes + bytes / 100 * kTablesPerCent + kTablesOfEachBytes * live;
    };
    uint64_t sufficient = with_tables(blocks);
    // Of a short life it is not known what was used; what there was moved something.
    constexpr uint64_t kMoreShare = 8;
    if (totals_.read_bytes + totals_.written_bytes > 0) {
        const uint64_t more = totals_.budget_bytes + totals_.budget_bytes / kMoreShare;
        sufficient = std::max(sufficient, std::min(more, with_tables(totals_.far_bytes_peak)));
    }
    totals_.sufficient_bytes = std::max(before.sufficient_bytes, sufficient);
}

void RunWatch::note_sample(double elapsed_s, bool is_last) {
    const RunSample sample = {elapsed_s,          totals_.far_bytes,     totals_.local_bytes,
                              totals_.read_bytes, totals_.written_bytes, totals_.wait_ns,
                              totals_.faults};
    is_last ? samples_.add_last(sample) : samples_.add(sample);
    if (page_->wants_maps == 0) return;
    std::vector<RunMapShot> shots = shoot_maps(elapsed_s);
    if (!shots.empty()) is_last ? maps_.add_last(std::move(shots)) : maps_.add(std::move(shots));
}

std::vector<RunMapShot> RunWatch::shoot_maps(double elapsed_s) const {
    std::vector<size_t> largest;
    for (size_t i = 0; i < rows_.size(); ++i) {
        if (rows_[i].last.process_id != 0 && !rows_[i].last.has_ended) largest.push_back(i);
    }
    std::ranges::sort(largest, std::greater<>(), [&](size_t i) { return rows_[i].last.far_bytes; });
    if (largest.size() > kMapProcesses) largest.resize(kMapProcesses);
    std::vector<RunMapShot> shots;
    for (const size_t row : largest) {
        for (size_t area = 0; area < RunRow::kMaps; ++area) {
            const telemetry::RunMap& map = page_->rows[row].maps[area];
            if (map.bytes.load() == 0) continue;
            RunMapShot& shot = shots.emplace_back();
            shot.elapsed_s = elapsed_s;
            shot.process_id = rows_[row].last.process_id;
            shot.area = RunRow::kMapNames[area];
            shot.begin = map.begin.load();
            shot.bytes = map.bytes.load();
            for (size_t part = 0; part < telemetry::RunMap::kParts; ++part) {
                shot.local[part] = map.local[part].load(std::memory_order_relaxed);
                shot.kept[part] = map.kept[part].load(std::memory_order_relaxed);
            }
        }
    }
    return shots;
}

std::vector<ProcessFigures> RunWatch::processes() const {
    std::vector<ProcessFigures> all = former_;
    for (const Row& row : rows_) {
        if (row.last.process_id != 0) all.push_back(row.last);
    }
    return all;
}

std::vector<int> RunWatch::descriptors() const {
    std::vector<int> numbers;
    for (const Row& row : rows_) {
        if (row.process.is_open()) numbers.push_back(row.process.number());
    }
    return numbers;
}

}  // namespace hanare::cli
