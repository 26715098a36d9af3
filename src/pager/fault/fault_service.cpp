// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/fault_service.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <utility>

#include "base/units.hpp"
#include "pager/fault/handler.hpp"
#include "pager/fault/pager.hpp"
#include "pager/fault/region_table.hpp"
#include "sys/thread_state.hpp"

namespace hanare::pager {

namespace {

// As in the handler, where a round takes microseconds; here it takes a hundred of them.
constexpr uint32_t kRepeatsMax = 2000;
// After it the system call that was refused has long returned.
constexpr int64_t kRefusalTime_ms = 100;
constexpr char kCallFails[] = "the system call fails";

int64_t coarse_ms() noexcept {
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

void FaultService::run(const sys::WorkWait& work) noexcept {
    for (;;) {
        const bool has_refused = refusal_count_.load(std::memory_order_relaxed) > 0;
        const auto woken = work.wait(has_refused ? static_cast<int>(kRefusalTime_ms) : -1);
        if (woken == sys::WorkWait::Woken::kEnd) return;
        if (has_refused) forget_refusals();
        // One at a time, so that the others get the rest.
        sys::Userfault::Event event;
        if (userfault_.next_event(&event)) serve(event);
    }
}

void FaultService::serve(const sys::Userfault::Event& event) noexcept {
    const FaultScope scope;
    Region* region = region_table().enter(event.page);
    if (region == nullptr) {
        // Freed meanwhile, and about to be unmapped.
        userfault_.wake(event.page, kOsPageBytes);
        return;
    }
    if (is_missed_by_writer(*region, event)) {
        userfault_.wake(event.page, kOsPageBytes);
        region->leave();
        return;
    }
    telemetry::RawLine line;
    bool has_line = false;
    {
        // Released before the thread wakes up, which may fault again at once.
        Lease lease(*this, event.thread_id);
        const FaultOutcome outcome =
            serve_fault(*region, lease.faulter(), event.page, event.write, kRepeatsMax);
        if (!outcome.served()) has_line = give_up(lease, *region, event, outcome, line);
    }
    wake(*region, event.page);
    region->leave();
    if (has_line) tell(line);
}

// The program has taken a page away, and whoever writes it to the store waits for it: nobody else
// would end that.
bool FaultService::is_missed_by_writer(Region& region,
                                       const sys::Userfault::Event& event) noexcept {
    Pager& pager = *region.pager;
    if (!event.missing || !pager.is_missed_by_writer(region, event.page)) return false;
    // Looked at once more, since it may have been written meanwhile, and then is absent rightly.
    if (refuse(region, event.page) != 0 || !pager.is_missed_by_writer(region, event.page)) {
        return false;
    }
    telemetry::RawLine line;
    explain_failure(line, region, event.page, event.write, {HANARE_STATUS_OK, true},
                    "SIGBUS follows");
    line.write_stderr();
    return true;
}

FaultService::Lease::Lease(FaultService& service, uint32_t thread_id) noexcept
    : entry_(service.entries_[thread_id % kFaulters]),
      is_held_(!entry_.in_use.exchange(true, std::memory_order_acquire)) {
    if (is_held_ && std::exchange(entry_.thread_id, thread_id) != thread_id) {
        entry_.faulter = {};
    }
}

FaultService::Lease::~Lease() {
    if (is_held_) entry_.in_use.store(false, std::memory_order_release);
}

bool FaultService::take_refusal(uint32_t thread_id, const void* address,
                                FaultOutcome* outcome) noexcept {
    const auto* const byte = static_cast<const std::byte*>(address);
    const sys::LockGuard guard(lock_);
    const uint32_t count = refusal_count_.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < count; ++i) {
        Refusal& refusal = refusals_[i];
        const std::byte* const page = refusal.event.page;
        if (refusal.is_explained || refusal.event.thread_id != thread_id) continue;
        if (byte < page || byte >= page + kOsPageBytes) continue;
        refusal.is_explained = true;
        *outcome = refusal.outcome;
        return true;
    }
    return false;
}

// Everybody who waits for a part of a mapped block; of a sparse one only who waits for this page.
void FaultService::wake(const Region& region, std::byte* page) noexcept {
    const uint32_t index = region.index_of(page);
    if (block_word::resident(region.block(index).load())) {
        userfault_.wake(region.address_of(index), region.block_bytes);
    } else {
        userfault_.wake(page, kOsPageBytes);
    }
}

int FaultService::refuse(Region& region, std::byte* page) noexcept {
    const int error = engine_.refuse(page, kOsPageBytes, false);
    return error == EINVAL ? region.pager->refuse_absent(region, page) : error;
}

bool FaultService::give_up(Lease& lease, Region& region, const sys::Userfault::Event& event,
                           FaultOutcome outcome, telemetry::RawLine& line) noexcept {
    // A thread that runs may have faulted in a system call as well, and rarely it has gone on
    // since.
    const bool in_system_call =
        sys::thread_state(event.thread_id) == sys::ThreadState::kInSystemCall;
    const char* const consequence = in_system_call ? kCallFails : "SIGBUS follows";
    explain_failure(line, region, event.page, event.write, outcome, consequence);
    if (refuse(region, event.page) != 0) {
        // The page has come meanwhile, or it is there without the right that is needed.
        if (!lease.faulter().is_page_lost(event.page, kRepeatsMax)) return false;
        sys::signal_thread(event.thread_id, SIGBUS);
        return true;
    }
    // By the time the thread asks, nobody may know a region any more that ends.
    outcome.was_told = outcome.status == HANARE_STATUS_NOT_FOUND;
    if (outcome.was_told && !in_system_call) line.write_stderr();
    note_refusal({event, outcome, coarse_ms(), in_system_call});
    return in_system_call;
}

void FaultService::note_refusal(const Refusal& refusal) noexcept {
    const sys::LockGuard guard(lock_);
    const uint32_t count = refusal_count_.load(std::memory_order_relaxed);
    if (count == kRefusals) return;
    refusals_[count] = refusal;
    refusal_count_.store(count + 1, std::memory_order_relaxed);
}

void FaultService::forget_refusals() noexcept {
    const int64_t now_ms = coarse_ms();
    std::array<Refusal, kRefusals> old;
    uint32_t old_count = 0;
    {
        const sys::LockGuard guard(lock_);
        const uint32_t count = refusal_count_.load(std::memory_order_relaxed);
        uint32_t kept = 0;
        for (uint32_t i = 0; i < count; ++i) {
            const bool is_old = now_ms - refusals_[i].since_ms >= kRefusalTime_ms;
            (is_old ? old[old_count++] : refusals_[kept++]) = refusals_[i];
        }
        refusal_count_.store(kept, std::memory_order_relaxed);
    }
    for (uint32_t i = 0; i < old_count; ++i) forget(old[i]);
}

void FaultService::forget(Refusal refusal) noexcept {
    std::byte* const page = refusal.event.page;
    Region* region = region_table().enter(page);
    if (region == nullptr) return;
    if (!refusal.is_explained && !refusal.outcome.was_told) {
        // No signal has come of it.
        telemetry::RawLine line;
        explain_failure(line, *region, page, refusal.event.write, refusal.outcome, kCallFails);
        tell(line);
    }
    region->pager->poll_reads();  // or nobody might, and the block stays what it is
    if (region->pager->readmit(*region, page) == EBUSY) {
        note_refusal({refusal.event, refusal.outcome, coarse_ms(), true});
    }
    region->leave();
}

void FaultService::tell(const telemetry::RawLine& line) noexcept {
    {
        const sys::LockGuard guard(lock_);
        if (line_count_ == kLines) return;  // as many say the same already
        lines_[(first_line_ + line_count_++) % kLines] = line;
        if (is_telling_) return;
        is_telling_ = true;
    }
    telemetry::RawLine next;
    while (next_line(next)) next.write_stderr();
}

bool FaultService::next_line(telemetry::RawLine& line) noexcept {
    const sys::LockGuard guard(lock_);
    is_telling_ = line_count_ > 0;
    if (!is_telling_) return false;
    line = lines_[first_line_];
    first_line_ = (first_line_ + 1) % kLines;
    --line_count_;
    return true;
}

}  // namespace hanare::pager
