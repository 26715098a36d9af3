// SPDX-License-Identifier: Apache-2.0
//
// Releasing: what was written is sent home, and it is said of which blocks others have copies that
// are old.  By ordinary threads, one at a time.
#include <cstring>
#include <utility>

#include "dsm/diff.hpp"
#include "dsm/home_memory.hpp"
#include "dsm/watch.hpp"
#include "sys/memory.hpp"

namespace hanare::dsm {

using State = BlockState;

hanare_status HomeMemory::release(RunList& changed) noexcept {
    // A handler of the program's that touches a busy block in this thread would wait for itself.
    const sys::SignalBlock no_signals;
    const std::lock_guard guard(release_lock_);
    for (const Run& run : early_.runs()) changed.add(run);
    early_.clear();
    is_sending_.store(true);
    close_steady(changed);
    close_served(served_.take(), changed);
    close_dirty(dirty_.take(), changed);
    const hanare_status status = send_diffs();
    is_sending_.store(false);
    failure_ = HANARE_STATUS_OK;
    twins_.trim();
    changed.make_disjoint();
    return status;
}

// Others have copies of what could be written to meanwhile.  They are told, and from now on a write
// shows.  A copy that goes away while this is done is covered by the same notice, since nobody has
// seen that yet; where nothing was ever written to, there is nothing to tell.
void HomeMemory::close_served(std::span<uint32_t> served, RunList& changed) noexcept {
    while (!served.empty()) {
        const uint32_t first = served[0];
        const uint32_t listed = run_of(served);
        served = served.subspan(listed);
        for (uint32_t block = first; block < first + listed;) {
            uint32_t count = 0;
            for (; block + count < first + listed; ++count) {
                uint32_t seen = 0;
                take(block + count, seen);
                if (State::is_elsewhere(seen) || State::is_steady(seen)) break;
            }
            if (count > 0) close_served_run(block, count, changed);
            block += count;
            if (block == first + listed) break;
            close_moved(block, changed);
            give_back(block);
            ++block;
        }
    }
}

void HomeMemory::close_served_run(uint32_t first, uint32_t count, RunList& changed) noexcept {
    if (forbid_writes(first, count) != 0) note_failure(HANARE_STATUS_SYSTEM);
    for (uint32_t block = first; block < first + count; ++block) {
        uint32_t seen = state(block).load();
        uint32_t next = 0;
        do {
            next = seen & ~(State::kBusy | State::kServed | State::kOwed);
            if (State::rights(seen) != State::kAbsent) {
                next = State::with_rights(next & ~(State::kShared | State::kDirty), State::kRead);
                if ((seen & State::kDirty) != 0) next |= State::kInTurns;
            }
        } while (!state(block).compare_exchange_weak(seen, next));
        if (State::rights(seen) != State::kAbsent || (seen & State::kOwed) != 0) {
            changed.add({block, 1});
        }
    }
}

// Written to before it moved away.
void HomeMemory::close_moved(uint32_t block, RunList& changed) noexcept {
    if ((state(block).fetch_and(~State::kOwed) & State::kOwed) != 0) changed.add({block, 1});
}

void HomeMemory::close_dirty(std::span<uint32_t> dirty, RunList& changed) noexcept {
    while (!dirty.empty()) {
        const uint32_t first = dirty[0];
        const uint32_t count = run_of(dirty);
        dirty = dirty.subspan(count);
        for (uint32_t block = first; block < first + count; ++block) {
            uint32_t seen = 0;
            take(block, seen);
            state(block).fetch_and(~State::kListed);
            close_moved(block, changed);
            // It was dropped, or closed as served.
            if ((seen & State::kDirty) == 0) {
                give_back(block);
                continue;
            }
            changed.add({block, 1});
            if ((seen & State::kHomeHere) == 0) {
                close_dirty_copy(block);
                continue;
            }
            // All copies get the notice, so that nothing has to be recorded any more; but for those
            // that went away by now, which are in the other list.
            const bool is_in_turns =
                (seen & State::kInTurns) != 0 && State::rights(seen) != State::kAbsent;
            if (State::rights(seen) != State::kAbsent && become_steady(block)) continue;
            if (is_in_turns && forbid_writes(block, 1) != 0) note_failure(HANARE_STATUS_SYSTEM);
            uint32_t next = 0;
            seen = state(block).load();
            do {
                next = seen & ~(State::kBusy | State::kDirty);
                if ((seen & State::kServed) == 0) next &= ~State::kShared;
                if (is_in_turns) next = State::with_rights(next, State::kRead);
                next |= State::kInTurns;
            } while (!state(block).compare_exchange_weak(seen, next));
        }
    }
}

// The caller has it.  Who writes to it now waits.
void HomeMemory::close_dirty_copy(uint32_t block) noexcept {
    if (forbid_writes(block, 1) != 0) note_failure(HANARE_STATUS_SYSTEM);
    uint32_t seen = state(block).load();
    add_diff(block, State::home(seen));
    twins_.give_back(block);
    while (!state(block).compare_exchange_weak(
        seen, State::with_rights(seen & ~(State::kBusy | State::kDirty), State::kRead))) {
    }
}

void HomeMemory::add_diff(uint32_t block, uint32_t home) noexcept {
    if (kMailDiffBytes - diff_bytes_[home] < kDiffBytesMax) send_to(home);
    const size_t bytes = make_diff(block, twins_.of(block), segment_.alias(block),
                                   diffs_of(home) + diff_bytes_[home]);
    if (bytes == 0) return;
    diff_bytes_[home] += bytes;
    Counters::add(counters_.diffs);
    Counters::add(counters_.diff_bytes, bytes);
    if (auto* const watch = counters_.watch) {
        watch->note_diff(block, twins_.of(block), segment_.alias(block), bytes);
    }
}

hanare_status HomeMemory::send_diffs() noexcept {
    for (uint32_t home = 0; home < peers_.size(); ++home) send_to(home);
    return failure_;
}

void HomeMemory::send_to(uint32_t home) noexcept {
    const size_t bytes = std::exchange(diff_bytes_[home], 0);
    if (bytes > 0) note_failure(send(home, {diffs_of(home), bytes}));
}

// Each where it is applied: those of blocks that have moved go on alone, and what is behind them
// in small parts at first, since that may have moved, too.
hanare_status HomeMemory::send(uint32_t home, std::span<const std::byte> diffs) noexcept {
    uint32_t asked = home;
    size_t most = diffs.size();
    while (!diffs.empty()) {
        size_t bytes = diff_bytes(diffs);
        while (asked == home && bytes < diffs.size()) {
            const size_t more = diff_bytes(diffs.subspan(bytes));
            if (bytes + more > most) break;
            bytes += more;
        }
        HomeAnswer answer;
        const hanare_status status = send_part(asked, diffs.first(bytes), answer);
        if (status != HANARE_STATUS_OK) return status;
        diffs = diffs.subspan(answer.count);
        if (answer.count == bytes) {
            if (asked == home) most = std::min(2 * most, kMailDiffBytes);
            asked = home;
            continue;
        }
        most = kDiffBytesMax;
        // Still on its way there.
        if (asked != home) sys::yield_for_us(0);
        if (answer.home == peers_.rank()) continue;
        note_home(diff_block(diffs), answer.home);
        asked = answer.home;
    }
    return HANARE_STATUS_OK;
}

// In the question itself, or by way of the home's mail, where no others are under way then.
hanare_status HomeMemory::send_part(uint32_t home, std::span<const std::byte> diffs,
                                    HomeAnswer& answer) noexcept {
    QuestionText question({.kind = QuestionKind::kApply, .from = peers_.rank()});
    const bool is_short = diffs.size() <= question.room();
    fabric::Operation put;
    if (is_short) {
        question.append(diffs.data(), diffs.size());
    } else {
        question = QuestionText(
            {.kind = QuestionKind::kApply, .from = peers_.rank(), .begin = diffs.size()});
        put.kind = fabric::Kind::kPut;
        put.capability = peers_.keys(home).mail;
        put.offset = mail_diff_offset(peers_.rank());
        put.source = diffs;
        peers_.prepare(put);
        peers_.post(home, put);
    }
    size_t bytes = 0;
    const auto room = std::as_writable_bytes(std::span(&answer, 1));
    hanare_status status = peers_.ask(home, question.bytes(), room, &bytes);
    const hanare_status sent = is_short ? HANARE_STATUS_OK : peers_.wait(home, put);
    if (sent != HANARE_STATUS_OK) status = sent;
    if (status != HANARE_STATUS_OK) return status;
    const bool is_sound = bytes == sizeof answer && answer.count <= diffs.size() &&
                          (answer.count == diffs.size() || answer.home < peers_.size());
    return is_sound ? HANARE_STATUS_OK : HANARE_STATUS_CORRUPT;
}

}  // namespace hanare::dsm
