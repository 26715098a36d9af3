// SPDX-License-Identifier: Apache-2.0
//
// What synchronisation does to blocks: sending home what was written, dropping copies that are old,
// and fetching again what is needed in each epoch.  By ordinary threads; one releases at a time.
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "dsm/diff.hpp"
#include "dsm/fetch.hpp"
#include "dsm/home_memory.hpp"
#include "sys/memory.hpp"

namespace hanare::dsm {

using State = BlockState;

namespace {

// How many blocks of the sorted list follow each other from its beginning on.
uint32_t run_of(std::span<const uint32_t> blocks) {
    uint32_t count = 1;
    while (count < blocks.size() && blocks[count] == blocks[0] + count) ++count;
    return count;
}

}  // namespace

hanare_status HomeMemory::release(RunList& changed) noexcept {
    // A handler of the program's that touches a busy block in this thread would wait for itself.
    const sys::SignalBlock no_signals;
    const std::lock_guard guard(release_lock_);
    for (const Run& run : early_.runs()) changed.add(run);
    early_.clear();
    close_served(served_.take(), changed);
    close_dirty(dirty_.take(), changed);
    const hanare_status status = send_diffs();
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
        const uint32_t count = run_of(served);
        served = served.subspan(count);
        for (uint32_t i = 0; i < count; ++i) {
            uint32_t seen = 0;
            take(first + i, seen);
        }
        if (forbid_writes(first, count) != 0) note_failure(HANARE_STATUS_SYSTEM);
        for (uint32_t block = first; block < first + count; ++block) {
            uint32_t seen = state(block).load();
            uint32_t next = 0;
            do {
                next = seen & ~(State::kBusy | State::kServed);
                if (State::rights(seen) != State::kAbsent) {
                    next =
                        State::with_rights(next & ~(State::kShared | State::kDirty), State::kRead);
                }
            } while (!state(block).compare_exchange_weak(seen, next));
            if (State::rights(seen) != State::kAbsent) changed.add({block, 1});
        }
    }
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
            uint32_t next = 0;
            seen = state(block).load();
            do {
                next = seen & ~(State::kBusy | State::kDirty);
                if ((seen & State::kServed) == 0) next &= ~State::kShared;
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
}

hanare_status HomeMemory::send_diffs() noexcept {
    for (uint32_t home = 0; home < peers_.size(); ++home) send_to(home);
    return failure_;
}

void HomeMemory::send_to(uint32_t home) noexcept {
    const size_t bytes = std::exchange(diff_bytes_[home], 0);
    if (bytes > 0) note_failure(send(home, {diffs_of(home), bytes}));
}

// In the question itself, or by way of the home's mail, where no others are under way then.
hanare_status HomeMemory::send(uint32_t home, std::span<const std::byte> diffs) noexcept {
    QuestionText question({.kind = QuestionKind::kApply, .from = peers_.rank()});
    if (diffs.size() <= question.room()) {
        question.append(diffs.data(), diffs.size());
        return peers_.ask(home, question.bytes());
    }
    const QuestionText in_mail(
        {.kind = QuestionKind::kApply, .from = peers_.rank(), .begin = diffs.size()});
    fabric::Operation put;
    put.kind = fabric::Kind::kPut;
    put.capability = peers_.keys(home).mail;
    put.offset = mail_diff_offset(peers_.rank());
    put.source = diffs;
    peers_.prepare(put);
    peers_.post(home, put);
    const hanare_status asked = peers_.ask(home, in_mail.bytes());
    const hanare_status sent = peers_.wait(home, put);
    return sent != HANARE_STATUS_OK ? sent : asked;
}

// ---- copies that are old

hanare_status HomeMemory::invalidate(std::span<const Run> runs) noexcept {
    const sys::SignalBlock no_signals;
    const std::lock_guard guard(release_lock_);
    hanare_status first_failure = HANARE_STATUS_OK;
    for (const Run& run : runs) {
        if (run.first >= segment_.blocks()) continue;
        const uint32_t end = run.first + std::min(run.count, segment_.blocks() - run.first);
        const hanare_status status = drop(run.first, end);
        if (first_failure == HANARE_STATUS_OK) first_failure = status;
    }
    // What a barrier fetches again is there when refresh() looks.
    if (dropped_.count() > 2 * kDroppedMax) trim();
    return first_failure;
}

// What lies between copies, the program may have or not: only copies are dropped, several at once.
hanare_status HomeMemory::drop(uint32_t first, uint32_t end) noexcept {
    for (uint32_t block = first; block < end;) {
        const uint32_t count = take_copies(block, end);
        if (count > 0) {
            sys::unmap_pages(segment_.view(block), size_t{count} * kBlockBytes);
            Counters::add(counters_.invalidated_blocks, count);
        }
        for (uint32_t i = 0; i < count; ++i) {
            uint32_t seen = state(block + i).load();
            constexpr uint32_t kGone = State::kRights | State::kBusy | State::kDirty;
            while (!state(block + i).compare_exchange_weak(seen,
                                                           (seen & ~kGone) | State::kDropped)) {
            }
            if ((seen & State::kDropped) == 0) dropped_.add(block + i);
        }
        block += count == 0 ? 1 : count;
    }
    return std::exchange(failure_, HANARE_STATUS_OK);
}

// How many from the first on are copies; they are busy then, and what was written to them is home.
uint32_t HomeMemory::take_copies(uint32_t first, uint32_t end) noexcept {
    uint32_t count = 0;
    bool has_diffs = false;
    for (; first + count < end; ++count) {
        const uint32_t block = first + count;
        uint32_t seen = state(block).load();
        if ((seen & State::kHomeHere) != 0 ||
            (State::rights(seen) == State::kAbsent && (seen & State::kBusy) == 0)) {
            break;
        }
        take(block, seen);
        // Whose first touch was going on, or failed.
        if ((seen & State::kHomeHere) != 0 || State::rights(seen) == State::kAbsent) {
            give_back(block);
            break;
        }
        if ((seen & State::kDirty) != 0) {
            if (forbid_writes(block, 1) != 0) note_failure(HANARE_STATUS_SYSTEM);
            add_diff(block, State::home(seen));
            twins_.give_back(block);
            early_.add({block, 1});
            has_diffs = true;
        }
    }
    // Who fetches it again finds there what was written here.
    if (has_diffs) send_diffs();
    return count;
}

// Copies that were dropped and have not come again give their memory back.
void HomeMemory::trim() noexcept {
    std::span<const uint32_t> dropped = dropped_.take();
    while (!dropped.empty()) {
        const uint32_t first = dropped[0];
        const uint32_t listed = run_of(dropped);
        dropped = dropped.subspan(listed);
        uint32_t begin = first;
        const auto give_memory_back = [&](uint32_t end) {
            if (begin == end) return;
            sys::advise(segment_.alias(begin), size_t{end - begin} * kBlockBytes, MADV_REMOVE);
            for (uint32_t block = begin; block < end; ++block) give_back(block);
        };
        for (uint32_t block = first; block < first + listed; ++block) {
            state(block).fetch_and(~State::kDropped);
            uint32_t seen = 0;
            const bool is_taken = try_take(block, seen);
            if (is_taken && State::rights(seen) == State::kAbsent &&
                (seen & State::kHomeHere) == 0) {
                continue;
            }
            give_memory_back(block);
            begin = block + 1;
            if (is_taken) give_back(block);
        }
        give_memory_back(first + listed);
    }
}

// ---- what is needed in each epoch

// What was fetched since the last time and is absent now, was needed in the last epoch and changed:
// it is fetched before it is missed, all of it at once.  Now and then it is not, to see what is
// still needed.
hanare_status HomeMemory::refresh() noexcept {
    const sys::SignalBlock no_signals;
    const std::lock_guard guard(release_lock_);
    std::span<const uint32_t> fetched = fetched_.take();
    for (const uint32_t block : fetched) state(block).fetch_and(~State::kFetched);
    if (++refreshes_ % kRefreshPauses == 0) fetched = {};
    hanare_status first = HANARE_STATUS_OK;
    while (!fetched.empty()) {
        size_t used = 0;
        const hanare_status status = fetch_again(fetched, used);
        if (first == HANARE_STATUS_OK) first = status;
        fetched = fetched.subspan(used);
    }
    if (dropped_.count() > kDroppedMax) trim();
    return first;
}

// As many of them as one time allows: the first `used`.
hanare_status HomeMemory::fetch_again(std::span<const uint32_t> fetched, size_t& used) noexcept {
    std::array<std::optional<Fetch>, kFetchesAtOnce> fetches;
    size_t count = 0;
    for (used = 0; used < fetched.size(); ++used) {
        const uint32_t block = fetched[used];
        uint32_t seen = 0;
        if (!try_take(block, seen)) continue;
        if (State::rights(seen) != State::kAbsent || (seen & State::kHomeHere) != 0) {
            give_back(block);
            continue;
        }
        const uint32_t home = State::home(seen);
        if (count > 0 && fetches[count - 1]->home() == home &&
            fetches[count - 1]->follows(block)) {
            fetches[count - 1]->extend();
        } else if (count == fetches.size()) {
            give_back(block);
            break;
        } else {
            fetches[count++].emplace(home, Run{block, 1});
        }
    }
    const std::span begun(fetches.data(), count);
    for (auto& fetch : begun) fetch->begin(peers_, segment_);
    hanare_status first = HANARE_STATUS_OK;
    for (auto& fetch : begun) {
        hanare_status status = fetch->end(peers_);
        const Run run = fetch->run();
        if (status == HANARE_STATUS_OK && map(run.first, run.count, true) != 0) {
            status = HANARE_STATUS_SYSTEM;
        }
        Counters::add(counters_.fetched_blocks, status == HANARE_STATUS_OK ? run.count : 0);
        for (uint32_t block = run.first; block < run.first + run.count; ++block) {
            if (status == HANARE_STATUS_OK) note_fetched(block);
            give_back(block);
        }
        if (first == HANARE_STATUS_OK) first = status;
    }
    return first;
}

}  // namespace hanare::dsm
