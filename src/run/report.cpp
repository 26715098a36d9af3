// SPDX-License-Identifier: Apache-2.0
#include "run/report.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <unistd.h>
#include <utility>

#include "hook/system_calls.hpp"
#include "intercept/intercept.hpp"
#include "pager/file_room.hpp"
#include "pager/whereabouts.hpp"
#include "run/children.hpp"
#include "run/control.hpp"
#include "run/recent_maximum.hpp"
#include "run/room.hpp"
#include "run/rows.hpp"
#include "sys/clock.hpp"
#include "sys/lock.hpp"
#include "sys/process_end.hpp"
#include "sys/process_usage.hpp"
#include "sys/shared_memory.hpp"
#include "sys/thread_state.hpp"
#include "telemetry/log.hpp"
#include "telemetry/run_page.hpp"

namespace hanare::run {

namespace {

using telemetry::RunChild;
using telemetry::RunPage;
using telemetry::RunProcess;
using telemetry::RunRow;

// What is counted from the start of the process on.
struct Counts {
    uint64_t wait_ns = 0;
    uint64_t faults = 0;
    uint64_t hits = 0;
    uint64_t misses = 0;
    uint64_t read_bytes = 0;
    uint64_t written_bytes = 0;
    uint64_t protected_calls = 0;
    uint64_t forks = 0;
};

struct Report {
    RunPage* page = nullptr;
    RunRow* row = nullptr;
    uint64_t far_bytes = 0;                   // as it was added to the page's last
    uint64_t local_bytes = 0;                 // of the budget, for all processes together
    uint64_t share_bytes = 0;                 // of that, this process's part
    RecentMaximum other_bytes;                // of that, what Hanare does not keep
    RunChild* own_child = nullptr;            // set aside for this process, until it has a row
    std::atomic<RunChild*> forked = nullptr;  // for the one that it is about to have
    RunProcess parent;                        // of that one
    pager::FileRoom file_room;
    bool is_lost = false;  // there is a page, and this process does not find it
    bool is_child = false;
    Counts inherited;           // by a child: not its own
    uint64_t faults_noted = 0;  // as activity
    bool is_attended = false;   // has an attendant
    bool answers = false;       // at a control socket
    std::array<char, 16> command{};
};
constinit Report report;
constinit std::atomic<bool> busy{false};
// For the figures of a process that has no row.
constinit RunRow row_of_its_own;

Result<RunPage*> map_page(const char* path) {
    HANARE_TRY_ASSIGN(sys::Mapping memory, sys::map_shared_file(path, sizeof(RunPage)));
    auto* const page = reinterpret_cast<RunPage*>(memory.address());
    if (page->magic != RunPage::kMagic || page->bytes != sizeof(RunPage)) {
        return fail(HANARE_STATUS_NOT_FOUND, "%s is no page of hanare run", path);
    }
    // Never destroyed: the attendant writes there until the process is gone.
    static const auto* const kept = new sys::Mapping(std::move(memory));
    return reinterpret_cast<RunPage*>(kept->address());
}

// Of those that do not find the others nobody knows how many there are.
constexpr uint64_t kLostShare = 16;

// Another user, another /proc, or `hanare run` has ended.  What this process starts finds the page
// no better, and does not say so again.
void find_page(char* path) {
    constexpr char kIsKnown = '-';
    const bool is_known = *path == kIsKnown;
    if (!is_known) {
        const Result<RunPage*> page = map_page(path);
        if (page) {
            report.page = *page;
            this_process();  // while there is a /proc
            return;
        }
        telemetry::log(telemetry::LogLevel::kWarn,
                       "the other programs of hanare run are not found (%s): this one, and each "
                       "that it starts, takes 1/%u of the local memory",
                       page.error().text, static_cast<unsigned>(kLostShare));
        *path = kIsKnown;
    }
    report.is_lost = true;
    report.local_bytes /= kLostShare;
}

// What another program left, which this process was before it called exec.
void end_own_rows() noexcept {
    if (report.page->processes.load() == 0) return;  // and most of the page is not even there
    const RunProcess process = this_process();
    release_all_of(*report.page, process);
    end_rows_of(*report.page, process);
}

void begin_row(RunRow& row) noexcept {
    row.process.store(this_process());
    const std::array<char, 16>& name = report.command;
    for (size_t i = 0; i < name.size(); ++i) row.command[i].store(name[i]);
#define HANARE_RUN_CLEAR(field, text) row.field.store(0);
    HANARE_RUN_FIGURE_MAP(HANARE_RUN_CLEAR)
#undef HANARE_RUN_CLEAR
    for (telemetry::RunMap& map : row.maps) map.bytes.store(0);
    row.answers.store(report.answers ? 1 : 0);
}

RunRow* claim_row() noexcept {
    RunRow* const row = take_row(*report.page);
    if (row == nullptr) return nullptr;
    begin_row(*row);
    row->divided_among.store(0);
    row->present_bytes.store(0);
    row->least_bytes.store(0);
    row->share_bytes.store(0);
    row->activity.store(0);
    row->shares.store(1);
    report.page->sharers.fetch_add(1);
    report.page->processes.fetch_add(1);
    row->state.store(RunRow::kLive);
    return row;
}

void raise(std::atomic<uint64_t>& peak, uint64_t value) noexcept {
    uint64_t seen = peak.load();
    while (seen < value && !peak.compare_exchange_weak(seen, value)) {
    }
}

RunRow& current_row() noexcept { return report.row != nullptr ? *report.row : row_of_its_own; }

// Older counts tell nothing.
constexpr uint64_t kActivityNs = 1'000'000'000;
// Fewer faults than so many make no difference.
constexpr uint64_t kActivityMin = 100;
// One part in so many of the budget is divided evenly, the rest by activity.
constexpr uint64_t kEvenShare = 4;

void note_activity(RunRow& row, uint64_t faults) noexcept {
    static uint64_t counted_ns = 0;
    const uint64_t now_ns = sys::now_ns();
    const uint64_t passed_ns = std::min(now_ns - counted_ns, kActivityNs);
    const uint64_t before = row.activity.load(std::memory_order_relaxed);
    const uint64_t kept = before / kActivityNs * (kActivityNs - passed_ns) +
                          before % kActivityNs * (kActivityNs - passed_ns) / kActivityNs;
    row.activity = kept + (faults - std::min(faults, report.faults_noted));
    row.active_ns = now_ns;
    report.faults_noted = faults;
    counted_ns = now_ns;
}

// Figures are taken ten times a second: what a program has had in between, or in a short life, is
// known of each kind of memory alone.  A child inherits these, and they are not its own.
uint64_t own_peak(const intercept::Space::Figures& figures) noexcept {
    if (report.is_child) return figures.far_bytes;
    return std::max({figures.far_bytes, figures.heap_bytes_peak, figures.static_bytes_peak,
                     figures.mapping_bytes_peak});
}

uint64_t faults_of(const hanare_counters& counters) noexcept {
    return counters.read_faults + counters.write_faults + counters.upgrade_faults;
}

Counts counts_of(const intercept::Space& space, const hanare_counters& counters) noexcept {
    return {
        .wait_ns = counters.wait_ns,
        .faults = faults_of(counters),
        .hits = counters.staged_hits,
        .misses = counters.demand_reads + counters.part_reads + counters.wait_faults,
        .read_bytes = counters.read_bytes,
        .written_bytes = counters.written_bytes,
        .protected_calls = space.protected_calls(),
        .forks = space.forks(),
    };
}

void write_row(intercept::Space& space, const hanare_counters& counters) noexcept {
    RunRow& row = current_row();
    if (row.process.load() != this_process()) begin_row(row);
    const intercept::Space::Figures figures = space.figures();
    row.far_bytes = figures.far_bytes;
    raise(row.far_bytes_peak, own_peak(figures));
    // What has no attendant tells of itself now and then; but frames stay, once there are some.
    row.used_bytes = figures.used_bytes;
    raise(row.used_bytes_peak, std::max(figures.used_bytes, counters.frame_bytes));
    row.local_bytes = counters.resident_bytes;
    raise(row.local_bytes_peak, counters.resident_bytes);
    row.budget_bytes = counters.budget_bytes;
    row.heap_bytes_peak = figures.heap_bytes_peak;
    row.static_bytes_peak = figures.static_bytes_peak;
    row.mapping_bytes_peak = figures.mapping_bytes_peak;
    const Counts counts = counts_of(space, counters);
    row.wait_ns = counts.wait_ns - report.inherited.wait_ns;
    row.faults = counts.faults - report.inherited.faults;
    row.hits = counts.hits - report.inherited.hits;
    row.misses = counts.misses - report.inherited.misses;
    row.read_bytes = counts.read_bytes - report.inherited.read_bytes;
    row.written_bytes = counts.written_bytes - report.inherited.written_bytes;
    row.protected_calls = counts.protected_calls - report.inherited.protected_calls;
    row.forks = counts.forks - report.inherited.forks;
    const hook::RewriteReport sites = hook::rewrite_report();
    row.rewritten_sites = sites.rewritten;
    row.left_sites = sites.left;
    if (report.row == nullptr) return;
    const uint64_t far = figures.far_bytes;
    const uint64_t total =
        report.page->far_bytes.fetch_add(far - report.far_bytes) + (far - report.far_bytes);
    report.far_bytes = far;
    raise(report.page->far_bytes_peak, std::max(total, own_peak(figures)));
}

// A pool that keeps its budget but for one part in so many is short of it.
constexpr uint64_t kSlackShare = 64;

// For all processes with a row; at least half, however many children are about to need memory.
uint64_t bytes_to_share() noexcept {
    if (report.page == nullptr) return report.local_bytes;
    const uint64_t bytes = bytes_set_aside(*report.page, report.forked.load());
    return report.local_bytes - std::min(bytes, report.local_bytes / 2);
}

// Of what all processes may have, this one's part: some of it evenly, the rest by activity; but it
// grows only into what the others have given up.
uint64_t share_of_budget(uint32_t sharers) noexcept {
    const uint64_t local_bytes = bytes_to_share();
    if (report.row == nullptr || sharers == 1) return local_bytes / sharers;
    const uint64_t now_ns = sys::now_ns();
    const auto is_recent = [&](const RunRow& row) {
        return now_ns - std::min(now_ns, row.active_ns.load()) < kActivityNs;
    };
    const uint64_t equal = local_bytes / kEvenShare / sharers;
    const uint64_t even = std::max(equal, report.row->least_bytes.load());
    uint64_t evens = even;
    const uint64_t weight = kActivityMin + report.row->activity.load();
    uint64_t weights = weight;
    uint64_t others_bytes = 0;
    for (const RunRow& row : std::as_const(*report.page).used_rows()) {
        if (&row == report.row || row.shares.load() != 1 || row.state.load() != RunRow::kLive) {
            continue;
        }
        const bool recent = is_recent(row);
        weights += kActivityMin + (recent ? row.activity.load() : 0);
        const uint64_t granted = recent ? row.share_bytes.load() : 0;
        others_bytes += std::max(row.present_bytes.load(), granted);
        evens += std::max(equal, row.least_bytes.load());
    }
    const uint64_t rest = local_bytes - std::min(local_bytes, evens);
    const uint64_t share = even + rest / weights * weight + rest % weights * weight / weights;
    const uint64_t left = local_bytes - std::min(local_bytes, others_bytes);
    return std::max(even, std::min(share, std::max(left, report.share_bytes)));
}

void write_maps(const intercept::Space& space) noexcept {
    static_assert(RunRow::kMaps == intercept::Space::kAreas);
    constexpr uint64_t kEveryNs = 90'000'000;  // a child's first is its parent's next
    static uint64_t written_ns = 0;
    const uint64_t now_ns = sys::now_ns();
    if (report.row == nullptr || report.page->wants_maps == 0) return;
    if (now_ns - written_ns < kEveryNs) return;
    written_ns = now_ns;
    for (size_t area = 0; area < RunRow::kMaps; ++area) {
        const pager::Region* const region = space.region_at(area);
        if (region == nullptr) continue;
        telemetry::RunMap& map = report.row->maps[area];
        map.begin = reinterpret_cast<uintptr_t>(region->begin());
        map.bytes = pager::note_whereabouts(*region, map.local, map.kept);
    }
}

// What the program has in local memory besides what Hanare keeps for it is part of what it may
// have.
// Returns among how many the whole is divided.
uint32_t adapt_budget(pager::Pool& pool, const hanare_counters& counters) noexcept {
    const uint32_t sharers =
        report.page == nullptr ? 1 : std::max<uint32_t>(report.page->sharers.load(), 1);
    if (report.row != nullptr) {
        note_activity(*report.row, faults_of(counters));
    }
    uint64_t share = share_of_budget(sharers);
    // At once, and the others have their part in it when they hear of it.
    if (const RunChild* const forked = report.forked.load(); forked != nullptr) {
        share -= std::min(forked->bytes.load(), share / 2);
    }
    report.share_bytes = share;
    if (report.row != nullptr) report.row->share_bytes = share;
    const uint64_t kept = counters.frame_bytes + counters.metadata_bytes;
    const sys::OwnMemory memory = sys::own_memory();
    const uint64_t present = memory.anonymous_bytes + memory.page_table_bytes;
    if (report.row != nullptr) report.row->present_bytes = present;
    // The two figures are not of the same moment: what is a little less now may be as much.
    const uint64_t other_bytes =
        report.other_bytes.update(present > kept ? present - kept : 0, sys::now_ns());
    if (report.row != nullptr) {
        report.row->least_bytes = other_bytes + pool.least_budget_bytes();
    }
    const bool is_short = kept + kept / kSlackShare >= counters.budget_bytes;
    const uint64_t taken =
        other_bytes + report.file_room.update(sys::now_ns(), sys::major_faults(),
                                              share - std::min(share, other_bytes), is_short);
    pool.set_budget(share > taken ? share - taken : 0);
    return sharers;
}

void tell(control::Answer& answer, const RunRow& row) noexcept {
    char name[16];
    for (size_t i = 0; i < sizeof name; ++i) name[i] = row.command[i].load();
    answer.member("command", std::string_view(name, strnlen(name, sizeof name)));
#define HANARE_RUN_TELL(field, text) answer.member(#field, row.field.load());
    HANARE_RUN_FIGURE_MAP(HANARE_RUN_TELL)
#undef HANARE_RUN_TELL
}

// What who has no attendant knows of the others.
constinit std::atomic<uint32_t> sharers_seen{0};
constinit std::atomic<uint64_t> shared_ns{0};     // when it asked for its part last
constinit std::atomic<uint64_t> shared_bytes{0};  // what it had then

// Dead processes have no part of the budget any more.
void look_for_dead() noexcept {
    constexpr uint64_t kEveryNs = 1'000'000'000;
    static uint64_t looked_ns = 0;
    const uint64_t now_ns = sys::now_ns();
    if (report.row == nullptr || now_ns - looked_ns < kEveryNs) return;
    looked_ns = now_ns;
    end_rows_of_dead(*report.page, this_process());
}

// False: another thread does it at this moment, or there is nothing to report.
bool try_report() noexcept {
    intercept::Space* const space = intercept::space();
    if (space == nullptr || space->pool() == nullptr || busy.exchange(true)) return false;
    hanare_counters counters = {};
    static_cast<void>(space->pool()->stats(nullptr, counters));
    if (report.page != nullptr && report.row == nullptr) report.row = claim_row();
    look_for_dead();
    const uint32_t sharers = adapt_budget(*space->pool(), counters);
    static_cast<void>(space->pool()->stats(nullptr, counters));
    write_row(*space, counters);
    write_maps(*space);
    if (report.row != nullptr) report.row->divided_among.store(report.is_attended ? sharers : 0);
    if (report.row != nullptr && report.own_child != nullptr) {
        // The row counts it from now on.
        release(*std::exchange(report.own_child, nullptr));
    }
    busy.store(false);
    return true;
}

[[gnu::destructor]] void report_at_exit() { report_figures(); }

}  // namespace

void open_report(uint64_t local_bytes) {
    report.local_bytes = local_bytes;
    if (char* const path = std::getenv("HANARE_RUN_PAGE")) find_page(path);
    if (report.page != nullptr) end_own_rows();
    report.command = sys::thread_name();
}

void report_figures() noexcept { static_cast<void>(try_report()); }

void note_attended() noexcept {
    report.is_attended = true;
    intercept::space()->set_attended();
}

bool is_alone() noexcept {
    return report.page == nullptr ||
           report.page->sharers.load() <= (report.row != nullptr ? 1U : 0U);
}

// Now and then, and whenever it has grown by much.  The others need a moment to make room for a
// child at first.
void share_budget(pager::Pager& pager) noexcept {
    constexpr uint64_t kEveryNs = 100'000'000;
    constexpr uint64_t kStepsOfBudget = 32;
    const uint64_t now_ns = sys::now_ns();
    if (report.page == nullptr) {
        if (!report.is_lost || now_ns - shared_ns < kEveryNs) return;
        shared_ns = now_ns;
        report_figures();
        intercept::space()->pool()->shrink_to_budget();
        return;
    }
    const bool is_first = report.row == nullptr;
    const uint64_t bytes = pager.frames().usage().frame_bytes;
    if (!is_first && now_ns - shared_ns < kEveryNs &&
        bytes < shared_bytes + report.local_bytes / kStepsOfBudget &&
        report.page->sharers.load(std::memory_order_relaxed) == sharers_seen) {
        return;
    }
    shared_ns = now_ns;
    shared_bytes = bytes;
    report_figures();
    if (report.row == nullptr) return;
    sharers_seen = report.page->sharers.load();
    intercept::space()->pool()->shrink_to_budget();
    if (!is_first) return;
    wait_for_room(*report.page, report.row, sharers_seen);
    report_figures();
}

// The kernel copies the page tables, and a little of its own for each process.
void set_aside_for_child() noexcept {
    constexpr uint64_t kOwnBytes = 4 << 20;
    constexpr uint32_t kTries = 200;
    constexpr uint32_t kPauseUs = 100;
    if (report.page == nullptr) return;
    pager::Pool& pool = *intercept::space()->pool();
    const RunProcess process = this_process();
    const uint64_t bytes = sys::own_memory().page_table_bytes + kOwnBytes;
    report.parent = process;
    RunChild* const forked = set_aside(*report.page, process, bytes);
    report.forked.store(forked);
    // Who has no part of the budget yet has nothing of its own to give up.
    if (forked == nullptr || (report.is_child && report.row == nullptr)) return;
    // Whoever reports right now may not have seen it.
    for (uint32_t i = 0; i < kTries && !try_report(); ++i) sys::yield_for_us(kPauseUs);
    const pager::Gate::Pass pass(pool.pager().gate());
    pool.shrink_to_budget();
}

void note_child(int child) noexcept {
    RunChild* const forked = report.forked.exchange(nullptr);
    if (forked == nullptr) return;
    if (child > 0) {
        note_owner(*forked, report.parent, child);
    } else {
        release(*forked);
    }
}

void begin_child_report() noexcept {
    forget_this_process();
    report.own_child = report.forked.exchange(nullptr);
    report.row = nullptr;
    report.is_child = true;
    intercept::Space& space = *intercept::space();
    hanare_counters counters = {};
    if (space.pool() != nullptr) static_cast<void>(space.pool()->stats(nullptr, counters));
    report.inherited = counts_of(space, counters);
    report.faults_noted = report.inherited.faults;
    report.is_attended = false;
    report.far_bytes = 0;
    report.share_bytes = 0;
    report.other_bytes = {};
    report.file_room = {};
    report.command = sys::thread_name();
    sharers_seen = 0;
    shared_ns = 0;
    shared_bytes = 0;
    busy.store(false);
    abandon_control_in_child();
}

void note_answers(bool answers) noexcept {
    report.answers = answers;
    if (report.row != nullptr) report.row->answers.store(answers ? 1 : 0);
}

void tell_figures(control::Answer& answer) noexcept { tell(answer, current_row()); }

// One that was killed stands there until `hanare run` takes it out, if that still lives.
void tell_others(control::Answer& answer) noexcept {
    if (report.page == nullptr) return;
    for (const RunRow& row : std::as_const(*report.page).used_rows()) {
        const RunProcess process = row.process.load();
        if (row.state.load() != RunRow::kLive || row.answers.load() != 0 || process.id == 0 ||
            process == this_process() ||
            (this_process().can_tell_of(process) && !sys::exists(process.id))) {
            continue;
        }
        answer.open('{').member("process_id", static_cast<uint64_t>(process.id));
        tell(answer, row);
        answer.close('}');
    }
}

}  // namespace hanare::run
