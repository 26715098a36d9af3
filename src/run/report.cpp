// SPDX-License-Identifier: Apache-2.0
#include "run/report.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <unistd.h>
#include <utility>

#include "intercept/intercept.hpp"
#include "sys/lock.hpp"
#include "sys/process_usage.hpp"
#include "sys/shared_memory.hpp"
#include "sys/thread_state.hpp"
#include "telemetry/run_page.hpp"

namespace hanare::run {

namespace {

using telemetry::RunPage;
using telemetry::RunRow;

struct Report {
    RunPage* page = nullptr;
    RunRow* row = nullptr;
    uint64_t far_bytes = 0;    // as it was added to the page's last
    uint64_t local_bytes = 0;  // of the budget, where there is no page
    bool is_child = false;     // without an attendant
    hook::RewriteReport sites;
};
constinit Report report;
constinit std::atomic<bool> busy{false};

RunPage* map_page(const char* path) {
    auto memory = sys::map_shared_file(path, sizeof(RunPage));
    if (!memory) return nullptr;
    auto* const page = reinterpret_cast<RunPage*>(memory->address());
    if (page->magic != RunPage::kMagic || page->bytes != sizeof(RunPage)) return nullptr;
    static sys::Mapping kept;  // as long as the process
    kept = std::move(*memory);
    return page;
}

// Whoever wins each of these two steps does what belongs to it.
void end_row(RunRow& row) noexcept {
    uint32_t live = RunRow::kLive;
    if (row.state.compare_exchange_strong(live, RunRow::kEnded)) {
        report.page->far_bytes.fetch_sub(row.far_bytes.load());
    }
    uint32_t shares = 1;
    if (row.shares.compare_exchange_strong(shares, 0)) report.page->sharers.fetch_sub(1);
}

// A row that another program left, which this process was before it called exec.
void end_own_rows() noexcept {
    for (RunRow& row : report.page->rows) {
        if (row.state.load() == RunRow::kLive && row.process_id.load() == getpid()) end_row(row);
    }
}

RunRow* take_row() noexcept {
    for (const uint32_t state : {RunRow::kFree, RunRow::kEnded}) {
        for (RunRow& row : report.page->rows) {
            uint32_t seen = state;
            if (row.state.compare_exchange_strong(seen, RunRow::kClaimed)) return &row;
        }
    }
    return nullptr;
}

RunRow* claim_row() noexcept {
    RunRow* const row = take_row();
    if (row == nullptr) return nullptr;
    row->process_id.store(getpid());
    const std::array<char, 16> name = sys::thread_name();
    for (size_t i = 0; i < name.size(); ++i) row->command[i].store(name[i]);
#define HANARE_RUN_CLEAR(field, text) row->field.store(0);
    HANARE_RUN_FIGURE_MAP(HANARE_RUN_CLEAR)
#undef HANARE_RUN_CLEAR
    row->divided_among.store(0);
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

// Figures are taken ten times a second: what a program has had in between, or in a short life, is
// known of each kind of memory alone.  A child inherits these, and they are not its own.
uint64_t own_peak(const intercept::Space::Figures& figures) noexcept {
    if (report.is_child) return figures.far_bytes;
    return std::max({figures.far_bytes, figures.heap_bytes_peak, figures.static_bytes_peak,
                     figures.mapping_bytes_peak});
}

void write_row(intercept::Space& space, const hanare_counters& counters) noexcept {
    RunRow& row = *report.row;
    const intercept::Space::Figures figures = space.figures();
    row.far_bytes = figures.far_bytes;
    raise(row.far_bytes_peak, own_peak(figures));
    row.local_bytes = counters.resident_bytes;
    raise(row.local_bytes_peak, counters.resident_bytes);
    row.budget_bytes = counters.budget_bytes;
    row.heap_bytes_peak = figures.heap_bytes_peak;
    row.static_bytes_peak = figures.static_bytes_peak;
    row.mapping_bytes_peak = figures.mapping_bytes_peak;
    row.wait_ns = space.pool()->pager().wait_ns();
    row.faults = counters.read_faults + counters.write_faults + counters.upgrade_faults;
    row.read_bytes = counters.read_bytes;
    row.written_bytes = counters.written_bytes;
    row.protected_calls = space.protected_calls();
    row.rewritten_sites = report.sites.rewritten;
    row.left_sites = report.sites.left;
    row.forks = space.forks();
    const uint64_t far = figures.far_bytes;
    const uint64_t total =
        report.page->far_bytes.fetch_add(far - report.far_bytes) + (far - report.far_bytes);
    report.far_bytes = far;
    raise(report.page->far_bytes_peak, std::max(total, own_peak(figures)));
}

// What the program has in local memory besides what Hanare keeps for it is part of what it may
// have.
// Returns among how many the whole is divided.
uint32_t adapt_budget(pager::Pool& pool, const hanare_counters& counters) noexcept {
    const uint32_t sharers =
        report.page == nullptr ? 1 : std::max<uint32_t>(report.page->sharers.load(), 1);
    const uint64_t share = report.local_bytes / sharers;
    const uint64_t kept = counters.frame_bytes + counters.metadata_bytes;
    const uint64_t present = sys::anonymous_bytes();
    const uint64_t others = present > kept ? present - kept : 0;
    pool.set_budget(share > others ? share - others : 0);
    return sharers;
}

[[gnu::destructor]] void report_at_exit() { report_figures(); }

// What a child knows of the others.
uint32_t sharers_seen = 0;

void begin_child() noexcept {
    report.row = nullptr;
    report.is_child = true;
    report.far_bytes = 0;
    sharers_seen = 0;
    busy.store(false);
}

bool others_have_made_room() noexcept {
    constexpr uint64_t kSlackShare = 16;
    for (RunRow& row : report.page->rows) {
        const uint32_t among = row.divided_among.load();
        if (&row == report.row || row.state.load() != RunRow::kLive || among == 0) continue;
        const uint64_t budget = row.budget_bytes.load();
        if (among < sharers_seen || row.local_bytes.load() > budget + budget / kSlackShare) {
            return false;
        }
    }
    return true;
}

// A child has no attendant: it asks for its part of the budget itself, when it needs memory, and
// each time that there are more processes or fewer.  The others need a moment to make room for it.
void share_budget(pager::Pager&) noexcept {
    constexpr uint32_t kTriesMax = 200;
    constexpr uint32_t kPause_us = 10'000;
    if (report.page == nullptr) return;
    const bool is_first = report.row == nullptr;
    if (!is_first && report.page->sharers.load(std::memory_order_relaxed) == sharers_seen) return;
    report_figures();
    if (report.row == nullptr) return;
    sharers_seen = report.page->sharers.load();
    intercept::space()->pool()->shrink_to_budget();
    for (uint32_t tries = 0; is_first && tries < kTriesMax && !others_have_made_room(); ++tries) {
        sys::yield_for_us(kPause_us);
    }
}

}  // namespace

void open_report(const hook::RewriteReport& sites, uint64_t local_bytes) {
    report.sites = sites;
    report.local_bytes = local_bytes;
    if (const char* path = std::getenv("HANARE_RUN_PAGE")) report.page = map_page(path);
    if (report.page != nullptr) end_own_rows();
    intercept::space()->set_child_hooks({.began = begin_child, .needs_memory = share_budget});
}

void report_figures() noexcept {
    intercept::Space* const space = intercept::space();
    if (space == nullptr || space->pool() == nullptr || busy.exchange(true)) return;
    hanare_counters counters = {};
    static_cast<void>(space->pool()->stats(nullptr, counters));
    if (report.page != nullptr && report.row == nullptr) report.row = claim_row();
    const uint32_t sharers = adapt_budget(*space->pool(), counters);
    if (report.row != nullptr) {
        static_cast<void>(space->pool()->stats(nullptr, counters));
        write_row(*space, counters);
        report.row->divided_among.store(report.is_child ? 0 : sharers);
    }
    busy.store(false);
}

}  // namespace hanare::run
