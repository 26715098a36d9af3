// SPDX-License-Identifier: Apache-2.0
#include "run/rows.hpp"

#include <algorithm>
#include <unistd.h>

#include "run/children.hpp"
#include "sys/clock.hpp"
#include "sys/process_end.hpp"
#include "sys/process_namespace.hpp"

namespace hanare::run {

using telemetry::RunChild;
using telemetry::RunPage;
using telemetry::RunProcess;
using telemetry::RunRow;

namespace {

constinit std::atomic<RunProcess> known{RunProcess()};

RunRow* take_one_of(std::span<RunRow> rows, RunRow::State wanted) noexcept {
    for (RunRow& row : rows) {
        uint32_t state = wanted;
        if (row.state.compare_exchange_strong(state, RunRow::kClaimed)) return &row;
    }
    return nullptr;
}

// While it looks every now and then nobody else has to ask the kernel, which a filter of the
// program's own may not allow.  Elsewhere it may just be stopped, and no harm is done.
bool is_left(RunPage& page, const RunProcess& asker) noexcept {
    constexpr uint64_t kPatienceNs = 3'000'000'000;
    if (page.is_left.load() != 0) return true;
    const uint64_t now_ns = sys::now_ns();
    if (now_ns - std::min(now_ns, page.looked_ns.load()) < kPatienceNs) return false;
    if (!asker.can_tell_of(page.launcher)) return true;
    if (!sys::has_ended(page.launcher.id)) return false;
    page.is_left.store(1);
    return true;
}

// At most one of those who ask does what follows from it: another process may have the row next.
bool take_from_dead(std::atomic<RunProcess>& process, const RunProcess& asker) noexcept {
    RunProcess seen = process.load();
    return seen.id != 0 && seen.id != asker.id && asker.can_tell_of(seen) &&
           sys::has_ended(seen.id) && process.compare_exchange_strong(seen, RunProcess());
}

}  // namespace

RunProcess this_process() noexcept {
    RunProcess process = known.load(std::memory_order_relaxed);
    if (const int id = getpid(); process.id != id) {
        // Who has no /proc any more is where it was, but for the first in a namespace.
        const auto seen = static_cast<uint32_t>(sys::process_namespace());
        const uint32_t before = id != 1 ? process.name_space : 0;
        process = {.id = id, .name_space = seen != 0 ? seen : before};
        known.store(process, std::memory_order_relaxed);
    }
    return process;
}

void forget_this_process() noexcept {
    const RunProcess parent = known.load(std::memory_order_relaxed);
    known.store({.id = 0, .name_space = parent.name_space}, std::memory_order_relaxed);
}

RunRow* take_row(RunPage& page) noexcept {
    const std::span<RunRow> all(page.rows);
    RunRow* row = take_one_of(all.first(RunPage::kUsualRows), RunRow::kFree);
    if (row == nullptr) row = take_one_of(page.used_rows(), RunRow::kEnded);
    if (row == nullptr) row = take_one_of(all, RunRow::kFree);
    if (row == nullptr) return nullptr;
    const auto used = static_cast<uint32_t>(row - all.data() + 1);
    uint32_t seen = page.rows_used.load();
    while (seen < used && !page.rows_used.compare_exchange_weak(seen, used)) {
    }
    return row;
}

// Whoever wins each of these two steps does what belongs to it.
void end_row(RunPage& page, RunRow& row) noexcept {
    uint32_t live = RunRow::kLive;
    if (row.state.compare_exchange_strong(live, RunRow::kEnded)) {
        page.far_bytes.fetch_sub(row.far_bytes.load());
    }
    uint32_t shares = 1;
    if (row.shares.compare_exchange_strong(shares, 0)) page.sharers.fetch_sub(1);
}

void end_rows_of(RunPage& page, RunProcess process) noexcept {
    for (RunRow& row : page.used_rows()) {
        const bool is_live = row.state.load() == RunRow::kLive;
        const RunProcess seen = row.process.load();
        if (is_live && seen == process && process.can_tell_of(seen)) end_row(page, row);
    }
}

void end_rows_of_dead(RunPage& page, RunProcess asker) noexcept {
    if (asker.name_space == 0 || !is_left(page, asker)) return;
    for (RunRow& row : page.used_rows()) {
        if (row.state.load() == RunRow::kLive && take_from_dead(row.process, asker)) {
            end_row(page, row);
        }
    }
    for (RunChild& child : page.children) take_from_dead(child.process, asker);
}

}  // namespace hanare::run
