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
#include "sys/clock.hpp"

namespace hanare::pager {

namespace {

// As in the handler, where a round takes microseconds; here it takes a hundred of them.
constexpr uint32_t kRepeatsMax = 2000;
// After it the system call that was refused has long returned.
constexpr int64_t kRefusalTime_ms = 100;
// Between two attempts at a block whose state ends soon.
constexpr uint32_t kReadmitPauseUs = 100;
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
    const uint64_t began_ns = sys::now_ns();
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
    FaultOutcome outcome;
    telemetry::RawLine line;
    bool has_line = false;
    {
        // Released before the thread wakes up, which may fault again at once.
        Lease lease(*this, event.thread_id);
        outcome = serve_fault(*region, lease.faulter(), event.page, event.write, kRepeatsMax);
        if (!outcome.served()) has_line = give_up(lease, *region, event, outcome, line);
    }
    wake(*region, event.page);
    count(region->counters.wait_ns, sys::now_ns() - began_ns);
    region->leave();
    if (has_line) add_line(line);
    if (!outcome.served()) tell();
}

// The program has taken a page away, and whoever writes it to the store waits for it: nobody else
// would end that.
bool FaultService::is_missed_by_writer(Region& region,
                                       const sys::Userfault::Event& event) noexcept {
    Pager& pager = *region.pager;
    if (!event.missing || !pager.is_missed_by_writer(region, event.page)) return false;
    // Looked at once more, since it may have been written meanwhile, and then is absent rightly.
    // Its owner has to get on, so this is done without owning the block.
    if (engine_.refuse(event.page, kOsPageBytes, false) != 0 ||
        !pager.is_missed_by_writer(region, event.page)) {
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

bool FaultService::give_up(Lease& lease, Region& region, const sys::Userfault::Event& event,
                           FaultOutcome outcome, telemetry::RawLine& line) noexcept {
    // A thread that runs may have faulted in a system call as well, and rarely it has gone on
    // since.
    const sys::ThreadState state = sys::thread_state(event.thread_id);
    const bool in_system_call = state == sys::ThreadState::kInSystemCall;
    const char* const consequence = in_system_call ? kCallFails : "SIGBUS follows";
    explain_failure(line, region, event.page, event.write, outcome, consequence);
    if (region.pager->refuse(region, event.page) != 0) {
        // The page has come meanwhile, or is about to; or it is there without the right that is
        // needed.
        if (!lease.faulter().is_page_lost(event.page, kRepeatsMax)) return false;
        sys::signal_thread(event.thread_id, SIGBUS);
        return true;
    }
    // By the time the thread asks, nobody may know a region any more that ends.
    outcome.was_told = outcome.status == HANARE_STATUS_NOT_FOUND;
    if (outcome.was_told && !in_system_call) line.write_stderr();
    note_refusal({event, outcome, coarse_ms(), state, in_system_call});
    return in_system_call;
}

// Waits for the owner of a block as a fault on it does, and only if the table is full.
void FaultService::note_refusal(Refusal refusal) noexcept {
    if (!enter_refusal(refusal)) return;
    while (!readmit(refusal)) sys::yield_for_us(kReadmitPauseUs);
}

bool FaultService::enter_refusal(Refusal& refusal) noexcept {
    const sys::LockGuard guard(lock_);
    const uint32_t count = refusal_count_.load(std::memory_order_relaxed);
    Refusal* const begin = refusals_.data();
    Refusal* const end = begin + count;
    Refusal* const equal = std::find_if(begin, end, [&](const Refusal& other) {
        return other.event.page == refusal.event.page && other.is_explained;
    });
    if (equal != end) {
        *equal = refusal;
        return false;
    }
    if (count < kRefusals) {
        *end = refusal;
        refusal_count_.store(count + 1, std::memory_order_relaxed);
        return false;
    }
    // The oldest, but rather one that nobody will ask for: a receiver of SIGBUS that finds none
    // tries by itself.
    Refusal* const oldest = std::min_element(begin, end, [](const Refusal& a, const Refusal& b) {
        if (a.is_explained != b.is_explained) return a.is_explained;
        return a.since_ms < b.since_ms;
    });
    std::swap(refusal, *oldest);
    return true;
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
    for (uint32_t i = 0; i < old_count; ++i) {
        if (readmit(old[i])) continue;
        old[i].since_ms = now_ms;
        note_refusal(old[i]);
    }
    if (old_count > 0) tell();
}

bool FaultService::readmit(Refusal& refusal) noexcept {
    const sys::Userfault::Event& event = refusal.event;
    Region* region = region_table().enter(event.page);
    if (region == nullptr) return true;
    bool is_over = true;
    // Else the region has ended, and its addresses are another pool's.
    if (region->pager->fault_service() == this) {
        // A thread that ran may have been in a system call, and no signal has come of it.
        if (refusal.state == sys::ThreadState::kRunning && !refusal.outcome.was_told &&
            !std::exchange(refusal.is_explained, true) &&
            !block_word::resident(region->block(region->index_of(event.page)).load())) {
            telemetry::RawLine line;
            explain_failure(line, *region, event.page, event.write, refusal.outcome, kCallFails);
            add_line(line);
        }
        region->pager->poll_transfers();  // or nobody might, and the block stays what it is
        is_over = region->pager->readmit(*region, event.page) != EBUSY;
    }
    region->leave();
    return is_over;
}

void FaultService::add_line(const telemetry::RawLine& line) noexcept {
    const sys::LockGuard guard(lock_);
    if (line_count_ == kLines) return;  // as many say the same already
    lines_[(first_line_ + line_count_++) % kLines] = line;
}

void FaultService::tell() noexcept {
    {
        const sys::LockGuard guard(lock_);
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
