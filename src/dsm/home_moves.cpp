// SPDX-License-Identifier: Apache-2.0
//
// Homes that move: to who writes, a few times for each block; then it stays where it is, and is
// written to with twins elsewhere.  So it does not matter who has touched memory first, and what
// several tasks write to in turns does not go round for ever.
//
// The old home takes the block out of its program's view first, and the data is read from its alias
// after that, which nobody changes any more: it has come when the new home's state says so.  Who
// asks the old one is told the new one, who asks the new one too early, the old one: it asks on
// until the data has come.  Until then it is in the old home's memory alone.  And who was told that
// it is there may read it there long after.  So nothing but what is a copy is ever fetched into the
// memory of who was a home (State::is_needed, Fetch::How::asks_first).
//
// Others may have copies, with a notice in the old home's log or without, and synchronise with the
// new one only, which may not know of that: so it gives one itself (kShared).  Of what the old one
// has written since its last release, and somebody has a copy, it tells at the next one (kOwed).
#include "dsm/home_memory.hpp"
#include "dsm/watch.hpp"
#include "sys/memory.hpp"

namespace hanare::dsm {

using State = BlockState;

// ---- who wants to write

// The block is this thread's, and a copy or absent; its home is elsewhere, as far as is known.
// Those behind it in the same state come along where writes go from one to the next.
hanare_status HomeMemory::obtain_home(uint32_t block) noexcept {
    const uint32_t like = state(block).load();
    const uint32_t rights = State::rights(like);
    const uint32_t window = moves_.take(block, kMoveWindowMin, kMoveWindowMax);
    const uint32_t taken = 1 + take_neighbours(block, like, window - 1);
    // What this task itself has changed is not at home yet.
    if (is_sending_.load()) {
        for (uint32_t i = 1; i < taken; ++i) give_back(block + i);
        if (rights == State::kRead) return write_with_twin(block);
        give_back(block);
        sys::yield_for_us(0);
        return HANARE_STATUS_OK;
    }
    moves_.next.store(block + taken, std::memory_order_relaxed);
    const bool is_needed = rights == State::kRead || State::is_needed(like);
    Fetch fetch(State::home(like), {block, taken},
                {.kind = QuestionKind::kMove, .asks_first = is_needed});
    fetch.begin(peers_, segment_);
    hanare_status status = fetch.end(peers_, segment_);
    if (status == HANARE_STATUS_OK) status = become_home(fetch, taken, rights);
    if (status == HANARE_STATUS_OK && fetch.count() == 0) note_next_home(fetch);
    const uint32_t now = state(block).load();
    for (uint32_t i = 1; i < taken; ++i) give_back(block + i);
    const bool has_copy =
        State::rights(now) == State::kRead && (now & State::kHomeHere) == 0 && fetch.count() > 0;
    if (status == HANARE_STATUS_OK && has_copy) return write_with_twin(block);
    give_back(block);
    return status;
}

// Of what has come, what was granted is at home here, and the rest are copies.  All stay busy.
hanare_status HomeMemory::become_home(Fetch& fetch, uint32_t taken, uint32_t rights) noexcept {
    const uint32_t first = fetch.run().first;
    const uint32_t count = std::min(fetch.count(), taken);
    for (uint32_t i = 0; i < count;) {
        const bool is_moved = (fetch.grant(i) & Grant::kMoved) != 0;
        uint32_t end = i;
        for (; end < count && ((fetch.grant(end) & Grant::kMoved) != 0) == is_moved; ++end) {
            const uint8_t grant = fetch.grant(end);
            const uint32_t block = first + end;
            uint32_t seen = state(block).load();
            uint32_t next = 0;
            do {
                next = seen | ((grant & Grant::kRefused) != 0 ? State::kFixed : 0);
                if (!is_moved) continue;
                next = State::with_home(seen & ~(State::kInTurns | State::kInTransit),
                                        peers_.rank(), true);
                next = State::with_moves(next, grant >> Grant::kMovesShift & State::kMovesMax);
                next |= State::kShared;
            } while (!state(block).compare_exchange_weak(seen, next));
            if (is_moved) note_write(block);
        }
        int error = 0;
        if (rights == State::kAbsent) {
            error = map(first + i, end - i, !is_moved);
        } else if (is_moved) {
            error = userfault_.write_protect(segment_.view(first + i),
                                             size_t{end - i} * kBlockBytes, false);
        }
        if (error != 0) return HANARE_STATUS_SYSTEM;
        for (; i < end; ++i) {
            if (is_moved) {
                uint32_t seen = state(first + i).load();
                while (!state(first + i).compare_exchange_weak(
                    seen, State::with_rights(seen, State::kWrite))) {
                }
            } else {
                note_fetched(first + i);
            }
        }
    }
    for (uint32_t i = 0; i < count; ++i) misses_.add({.block = first + i, .came_along = i > 0});
    Counters::add(counters_.fetched_blocks, count);
    if (auto* const watch = counters_.watch) watch->note_fetched(first, count);
    return HANARE_STATUS_OK;
}

void HomeMemory::note_home(uint32_t block, uint32_t home) noexcept {
    uint32_t seen = state(block).load();
    while ((seen & State::kHomeHere) == 0 &&
           !state(block).compare_exchange_weak(seen, State::with_home(seen, home, false))) {
    }
}

// The first block has not come.  Who is becoming its home, and had it from this task, says so.
void HomeMemory::note_next_home(const Fetch& fetch) noexcept {
    if (fetch.next_home() != peers_.rank()) note_home(fetch.run().first, fetch.next_home());
    sys::yield_for_us(0);
}

// ---- the home

bool HomeMemory::may_move(uint32_t block, uint32_t seen) const noexcept {
    return block < segment_.blocks() && (seen & State::kHomeHere) != 0 &&
           (seen & State::kBusy) == 0 && State::moves(seen) < State::kMovesMax;
}

bool HomeMemory::move_to(uint32_t task, uint64_t first, uint64_t count, HomeAnswer& answer,
                         uint8_t* grants) noexcept {
    if (first >= segment_.blocks() || count > segment_.blocks() - first || task == peers_.rank() ||
        task >= peers_.size()) {
        return false;
    }
    answer = {};
    const auto end = static_cast<uint32_t>(first + count);
    for (auto block = static_cast<uint32_t>(first); block < end;) {
        uint32_t given = 0;
        for (; block + given < end; ++given) {
            uint32_t seen = state(block + given).load();
            while (may_move(block + given, seen) &&
                   !state(block + given).compare_exchange_weak(seen, seen | State::kBusy)) {
            }
            if (!may_move(block + given, seen)) break;
            const uint32_t moves = State::moves(seen) + 1;
            grants[answer.count++] =
                static_cast<uint8_t>(Grant::kMoved | moves << Grant::kMovesShift);
        }
        give_away(block, given, task);
        block += given;
        if (block == end) break;
        if (!note_fetch_of(block)) {
            answer.home = State::home(state(block).load());
            break;
        }
        const bool is_fixed = State::moves(state(block).load()) == State::kMovesMax;
        grants[answer.count++] = is_fixed ? Grant::kRefused : 0;
        ++block;
    }
    return true;
}

// They are busy, by this thread.  A copy that was given away just now is in kShared by then, since
// the same thread says so.
void HomeMemory::give_away(uint32_t first, uint32_t count, uint32_t task) noexcept {
    if (count == 0) return;
    sys::unmap_pages(segment_.view(first), size_t{count} * kBlockBytes);
    for (uint32_t block = first; block < first + count; ++block) {
        const bool was_steady = is_steady(block);
        if (was_steady) end_steady(block);
        uint32_t seen = state(block).load();
        uint32_t next = 0;
        do {
            constexpr uint32_t kGone = State::kRights | State::kBusy | State::kDirty |
                                       State::kShared | State::kServed | State::kInTurns;
            next = State::with_moves(State::with_home(seen & ~kGone, task, false), 0) |
                   State::kInTransit | State::kWasHome;
            // It is in a list, of those that were written to, that were served or that are steady.
            const bool is_owed =
                was_steady || (seen & State::kDirty) != 0 ||
                ((seen & State::kServed) != 0 && State::rights(seen) != State::kAbsent);
            if (is_owed) next |= State::kOwed;
        } while (!state(block).compare_exchange_weak(seen, next));
    }
}

}  // namespace hanare::dsm
