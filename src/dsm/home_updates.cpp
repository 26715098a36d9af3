// SPDX-License-Identifier: Apache-2.0
//
// Updates: who fetches the same steady blocks after each barrier (followers.hpp) gets them before
// it, in its mail, so that nothing is to be fetched when the barrier is over.
//
// What comes is what the home held at some time after it knew certain positions of all tasks'
// notices, which come along.  A change whose notice lies before these is in it: diffs are home, and
// twins made anew, before their notices.  Who follows takes it only where it knows of no later
// notice of the block, by whomever, itself and the home among them.
#include <algorithm>
#include <cstring>

#include "dsm/home_memory.hpp"
#include "sys/signal.hpp"

namespace hanare::dsm {

using State = BlockState;

// ---- the home

size_t HomeMemory::make_update(uint32_t task, uint32_t barrier, std::span<const uint64_t> known,
                               std::byte* room) noexcept {
    const auto tasks = static_cast<uint32_t>(known.size());
    UpdateHead head = {.barrier = barrier};
    std::memcpy(room + sizeof head, known.data(), known.size_bytes());
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(steady_lock_);
    followers_.give_to(task, [&](uint32_t block) {
        if (head.count == kUpdateBlocksMax) return false;
        if (!is_steady(block)) return true;
        state(block).fetch_or(State::kShared);
        std::byte* const item = room + update_bytes(tasks, head.count++);
        std::memcpy(item, &block, sizeof block);
        std::memcpy(item + sizeof block, twins_.of(block), kBlockBytes);
        return true;
    });
    std::memcpy(room, &head, sizeof head);
    return head.count == 0 ? 0 : update_bytes(tasks, head.count);
}

uint32_t HomeMemory::next_follower(uint32_t from) noexcept {
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(steady_lock_);
    return followers_.next_task(from);
}

// ---- who follows

// What is wanted and absent.  Both are in order, and several are mapped at once.
hanare_status HomeMemory::take_updates(std::span<const Update> updates,
                                       std::span<const uint32_t> wanted) noexcept {
    const auto take = [&](const Update& update) {
        return std::ranges::binary_search(wanted, update.block) && take_update(update);
    };
    hanare_status first_failure = HANARE_STATUS_OK;
    for (size_t i = 0; i < updates.size();) {
        const uint32_t first = updates[i].block;
        uint32_t count = 0;
        for (; i < updates.size() && updates[i].block == first + count; ++i, ++count) {
            if (!take(updates[i])) break;
        }
        if (count == 0) {
            ++i;
            continue;
        }
        const bool is_mapped = map(first, count, true) == 0;
        if (!is_mapped) first_failure = HANARE_STATUS_SYSTEM;
        for (uint32_t block = first; block < first + count; ++block) {
            if (is_mapped) note_fetched(block);
            give_back(block);
        }
        if (is_mapped) Counters::add(counters_.fetched_blocks, count);
    }
    return first_failure;
}

// Whether it is of use; then the block is busy, and holds it.  Where this task was its home, and
// has not said yet what it wrote then, nobody knows whether that is in it.
bool HomeMemory::take_update(const Update& update) noexcept {
    uint32_t seen = 0;
    if (!try_take(update.block, seen)) return false;
    const bool is_absent = State::rights(seen) == State::kAbsent;
    const bool is_there = State::is_elsewhere(seen) && State::home(seen) == update.home;
    if (!is_absent || !is_there || (seen & (State::kInTransit | State::kOwed)) != 0) {
        give_back(update.block);
        return false;
    }
    std::memcpy(segment_.alias(update.block), update.data, kBlockBytes);
    return true;
}

}  // namespace hanare::dsm
