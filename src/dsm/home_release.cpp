// SPDX-License-Identifier: Apache-2.0
//
// What synchronisation does to blocks: sending home what was written, dropping copies that are old,
// and fetching again what is needed in each epoch.  By ordinary threads; one releases at a time.
#include <cstring>
#include <memory>
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

void note(std::vector<Run>& changed, uint32_t block) {
    if (!changed.empty() && changed.back().first + changed.back().count == block) {
        ++changed.back().count;
    } else {
        changed.push_back({block, 1});
    }
}

}  // namespace

hanare_status HomeMemory::release(std::vector<Run>& changed) {
    // A handler of the program's that touches a busy block in this thread would wait for itself.
    const sys::SignalBlock no_signals;
    const std::lock_guard guard(release_lock_);
    changed.swap(early_);
    close_served(served_.take(), changed);
    close_dirty(dirty_.take(), changed);
    const hanare_status status = send_diffs();
    failure_ = HANARE_STATUS_OK;
    make_disjoint(changed);
    return status;
}

// Others have copies of what could be written to meanwhile.  They are told, and from now on a write
// shows.  A copy that goes away while this is done is covered by the same notice, since nobody has
// seen that yet; where nothing was ever written to, there is nothing to tell.
void HomeMemory::close_served(std::span<uint32_t> served, std::vector<Run>& changed) {
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
            if (State::rights(seen) != State::kAbsent) note(changed, block);
        }
    }
}

void HomeMemory::close_dirty(std::span<uint32_t> dirty, std::vector<Run>& changed) {
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
            note(changed, block);
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
void HomeMemory::close_dirty_copy(uint32_t block) {
    if (forbid_writes(block, 1) != 0) note_failure(HANARE_STATUS_SYSTEM);
    uint32_t seen = state(block).load();
    add_diff(block, State::home(seen));
    while (!state(block).compare_exchange_weak(
        seen, State::with_rights(seen & ~(State::kBusy | State::kDirty), State::kRead))) {
    }
}

void HomeMemory::add_diff(uint32_t block, uint32_t home) {
    std::vector<std::byte>& diffs = diffs_[home];
    const size_t before = diffs.size();
    diffs.resize(before + kDiffBytesMax);
    const size_t bytes =
        make_diff(block, twin(block), segment_.alias(block), diffs.data() + before);
    diffs.resize(before + bytes);
    if (bytes == 0) return;
    Counters::add(counters_.diffs);
    Counters::add(counters_.diff_bytes, bytes);
    if (diffs.size() < kMailDiffBytes) return;
    note_failure(send_to(home, diffs));
    diffs.clear();
}

// Diffs that are under way to a home: in the question itself, or in its mail.
hanare_status HomeMemory::send_diffs() {
    for (uint32_t home = 0; home < peers_.size(); ++home) {
        if (diffs_[home].empty()) continue;
        note_failure(send_to(home, diffs_[home]));
        diffs_[home].clear();
    }
    return failure_;
}

hanare_status HomeMemory::send_to(uint32_t home, std::span<const std::byte> diffs) {
    while (!diffs.empty()) {
        // Whole diffs, as many as there is room for.
        size_t bytes = 0;
        while (bytes < diffs.size()) {
            const size_t next = diff_bytes(diffs.subspan(bytes));
            if (bytes + next > kMailDiffBytes) break;
            bytes += next;
        }
        const auto part = diffs.first(bytes);
        diffs = diffs.subspan(bytes);
        QuestionText question({.kind = QuestionKind::kApply, .from = peers_.rank()});
        if (part.size() <= question.room()) {
            question.append(part.data(), part.size());
            const hanare_status status = peers_.ask(home, question.bytes());
            if (status != HANARE_STATUS_OK) return status;
            continue;
        }
        QuestionText in_mail(
            {.kind = QuestionKind::kApply, .from = peers_.rank(), .begin = part.size()});
        fabric::Operation put;
        put.kind = fabric::Kind::kPut;
        put.capability = peers_.keys(home).mail;
        put.offset = mail_diff_offset(peers_.rank());
        put.source = part;
        peers_.prepare(put);
        peers_.post(home, put);
        const hanare_status asked = peers_.ask(home, in_mail.bytes());
        const hanare_status sent = peers_.wait(home, put);
        if (sent != HANARE_STATUS_OK) return sent;
        if (asked != HANARE_STATUS_OK) return asked;
    }
    return HANARE_STATUS_OK;
}

// ---- copies that are old

hanare_status HomeMemory::invalidate(std::span<const Run> runs) {
    const sys::SignalBlock no_signals;
    const std::lock_guard guard(release_lock_);
    hanare_status first_failure = HANARE_STATUS_OK;
    for (const Run& run : runs) {
        if (run.first >= segment_.blocks()) continue;
        const uint32_t end = run.first + std::min(run.count, segment_.blocks() - run.first);
        const hanare_status status = drop(run.first, end);
        if (first_failure == HANARE_STATUS_OK) first_failure = status;
    }
    return first_failure;
}

// What lies between copies, the program may have or not: only copies are dropped, several at once.
hanare_status HomeMemory::drop(uint32_t first, uint32_t end) {
    for (uint32_t block = first; block < end;) {
        uint32_t count = 0;
        bool has_diffs = false;
        for (; block + count < end; ++count) {
            uint32_t seen = state(block + count).load();
            if ((seen & State::kHomeHere) != 0 ||
                (State::rights(seen) == State::kAbsent && (seen & State::kBusy) == 0)) {
                break;
            }
            take(block + count, seen);
            // Whose first touch was going on.
            if ((seen & State::kHomeHere) != 0) {
                give_back(block + count);
                break;
            }
            if ((seen & State::kDirty) != 0) {
                if (forbid_writes(block + count, 1) != 0) note_failure(HANARE_STATUS_SYSTEM);
                add_diff(block + count, State::home(seen));
                note(early_, block + count);
                has_diffs = true;
            }
        }
        // Who fetches it again finds there what was written here.
        if (has_diffs) send_diffs();
        if (count > 0) {
            sys::unmap_pages(segment_.view(block), size_t{count} * kBlockBytes);
            Counters::add(counters_.invalidated_blocks, count);
        }
        for (uint32_t i = 0; i < count; ++i) {
            uint32_t seen = state(block + i).load();
            while (!state(block + i).compare_exchange_weak(
                seen, seen & ~(State::kRights | State::kBusy | State::kDirty))) {
            }
        }
        block += count == 0 ? 1 : count;
    }
    return std::exchange(failure_, HANARE_STATUS_OK);
}

// What was fetched since the last time and is absent now, was needed in the last epoch and changed:
// it is fetched before it is missed, all of it at once.  Now and then it is not, to see what is
// still needed.
hanare_status HomeMemory::refresh() {
    const sys::SignalBlock no_signals;
    const std::lock_guard guard(release_lock_);
    const std::span<const uint32_t> fetched = fetched_.take();
    if (++refreshes_ % kRefreshPauses == 0) return HANARE_STATUS_OK;
    std::vector<std::unique_ptr<Fetch>> fetches;
    uint32_t last = UINT32_MAX;
    for (const uint32_t block : fetched) {
        uint32_t seen = 0;
        if (block == last || !try_take(block, seen)) continue;
        last = block;
        if (State::rights(seen) != State::kAbsent || (seen & State::kHomeHere) != 0) {
            give_back(block);
            continue;
        }
        const uint32_t home = State::home(seen);
        if (!fetches.empty() && fetches.back()->home() == home && fetches.back()->follows(block)) {
            fetches.back()->extend();
        } else {
            fetches.push_back(std::make_unique<Fetch>(home, Run{block, 1}));
        }
    }
    for (const auto& fetch : fetches) fetch->begin(peers_, segment_);
    hanare_status first = HANARE_STATUS_OK;
    for (const auto& fetch : fetches) {
        hanare_status status = fetch->end(peers_);
        const Run run = fetch->run();
        if (status == HANARE_STATUS_OK && map(run.first, run.count, true) != 0) {
            status = HANARE_STATUS_SYSTEM;
        }
        Counters::add(counters_.fetched_blocks, status == HANARE_STATUS_OK ? run.count : 0);
        for (uint32_t block = run.first; block < run.first + run.count; ++block) {
            if (status == HANARE_STATUS_OK) {
                fetched_.add_hint(block);
                state(block).fetch_or(State::kRead);
            }
            give_back(block);
        }
        if (first == HANARE_STATUS_OK) first = status;
    }
    return first;
}

}  // namespace hanare::dsm
