// SPDX-License-Identifier: Apache-2.0
//
// Steady blocks: at home here, written to, and fetched by others, again and again.  They stay
// writable, so that a write costs no fault, and a twin has what they held at the last release. Each
// release compares: where they differ it gives a notice, and the twin is made anew.
//
// Who fetches what he needs in each epoch gets the twin (take_snapshot): a change never goes away
// before its notice is given, even one that is undone before the release.  Any other copy is of the
// block itself; it is noted as given away while that was writable (kServed), and gets a notice.
#include <cstring>

#include "dsm/diff.hpp"
#include "dsm/home_memory.hpp"

namespace hanare::dsm {

using State = BlockState;

// The caller has it; it was written to after others had fetched it, or has just moved here.  False:
// there are enough of these, or somebody wants to see the faults.
bool HomeMemory::become_steady(uint32_t block) noexcept {
    if (counters_.watch != nullptr || steady_count_ == kSteadyMax) return false;
    steady_[steady_count_++] = {.block = block};
    std::byte* const twin = twins_.take(block);
    const sys::LockGuard guard(steady_lock_);
    std::memcpy(twin, segment_.alias(block), kBlockBytes);
    uint32_t seen = state(block).load();
    while (!state(block).compare_exchange_weak(
        seen, (seen & ~(State::kBusy | State::kDirty)) | State::kSteady)) {
    }
    return true;
}

void HomeMemory::close_steady(RunList& changed) noexcept {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < steady_count_; ++i) {
        Steady steady = steady_[i];
        uint32_t seen = 0;
        take(steady.block, seen);
        if (!State::is_steady(seen)) {
            close_moved(steady.block, changed);
            give_back(steady.block);
        } else if (close_steady_block(steady, changed)) {
            steady_[kept++] = steady;
        }
    }
    steady_count_ = kept;
}

// The caller has it.  Whether it stays one: not where it rests, and not where it is fetched by
// others than those who take snapshots, and would be for ever.  What another thread writes while
// this looks is found the next time, or shows by a fault.
bool HomeMemory::close_steady_block(Steady& steady, RunList& changed) noexcept {
    const uint32_t block = steady.block;
    const std::byte* const data = segment_.alias(block);
    std::byte* const twin = twins_.of(block);
    const uint32_t fetches = state(block).fetch_and(~(State::kServed | State::kShared));
    const bool was_served = (fetches & State::kServed) != 0;
    const bool was_read = (fetches & State::kShared) != 0;
    bool is_changed = differs(twin, data);
    steady.unchanged = is_changed ? 0 : steady.unchanged + 1;
    steady.unread = was_read ? 0 : steady.unread + 1;
    steady.is_shared |= was_read;
    const bool stays =
        (is_changed || !was_served) && steady.unchanged < kIdleMax && steady.unread < kIdleMax;
    const auto protect = [&] {
        if (forbid_writes(block, 1) != 0) note_failure(HANARE_STATUS_SYSTEM);
    };
    if (stays) {
        const sys::LockGuard guard(steady_lock_);
        if (is_changed) {
            std::memcpy(twin, data, kBlockBytes);
            followers_.note_change(block);
        }
    } else {
        if (steady.is_shared) {
            protect();
            is_changed |= differs(twin, data);
        }
        end_steady(block);
        // Who has fetched it just now has what it held; what it holds now he learns.
        if (!steady.is_shared && (state(block).load() & State::kShared) != 0) {
            steady.is_shared = is_changed = true;
            protect();
        }
    }
    const bool is_told = is_changed || was_served;
    if (is_told) changed.add({block, 1});
    uint32_t seen = state(block).load();
    uint32_t next = 0;
    do {
        next = seen & ~State::kBusy;
        if (stays || !steady.is_shared) continue;
        next = State::with_rights(next & ~State::kInTurns, State::kRead);
        if (!is_told) next |= State::kShared;
    } while (!state(block).compare_exchange_weak(seen, next));
    if (is_told) steady.is_shared = false;
    return stays;
}

// The caller has it, and it has been steady.
void HomeMemory::end_steady(uint32_t block) noexcept {
    {
        const sys::LockGuard guard(steady_lock_);
        state(block).fetch_and(~State::kSteady);
        followers_.forget(block);
    }
    twins_.give_back(block);
}

bool HomeMemory::copy_steady(uint32_t block, uint32_t follower, std::byte* to) noexcept {
    const sys::LockGuard guard(steady_lock_);
    if (!is_steady(block)) return false;
    state(block).fetch_or(State::kShared);
    if (follower != Followers::kNobody) followers_.note_fetch(block, follower);
    std::memcpy(to, twins_.of(block), kBlockBytes);
    return true;
}

bool HomeMemory::take_snapshot(uint64_t first, uint64_t count, uint32_t follower,
                               HomeAnswer& answer, std::byte* snapshot) noexcept {
    protect(first, count);
    return note_each(first, count, answer, [&](uint32_t block) {
        std::byte* const to = snapshot + (block - first) * kBlockBytes;
        if (copy_steady(block, follower, to)) return true;
        if (!note_fetch_of(block)) return false;
        std::memcpy(to, segment_.alias(block), kBlockBytes);
        return true;
    });
}

}  // namespace hanare::dsm
