// SPDX-License-Identifier: Apache-2.0
//
// Copies: dropping those that are old, and fetching again what is needed in each epoch, or by each
// section under a lock.  By ordinary threads, one at a time.
#include <utility>

#include "dsm/home_memory.hpp"
#include "dsm/watch.hpp"
#include "sys/memory.hpp"
#include "sys/shared_memory.hpp"
#include "sys/signal.hpp"

namespace hanare::dsm {

using State = BlockState;

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
            if (auto* const watch = counters_.watch) watch->note_dropped(block, count);
        }
        for (uint32_t i = 0; i < count; ++i) {
            uint32_t seen = state(block + i).load();
            constexpr uint32_t kGone = State::kRights | State::kBusy | State::kDirty;
            while (
                !state(block + i).compare_exchange_weak(seen, (seen & ~kGone) | State::kDropped)) {
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
            sys::remove_pages(segment_.alias(begin), size_t{end - begin} * kBlockBytes);
            for (uint32_t block = begin; block < end; ++block) give_back(block);
        };
        for (uint32_t block = first; block < first + listed; ++block) {
            state(block).fetch_and(~State::kDropped);
            uint32_t seen = 0;
            const bool is_taken = try_take(block, seen);
            constexpr uint32_t kKept = State::kHomeHere | State::kWasHome;
            if (is_taken && State::rights(seen) == State::kAbsent && (seen & kKept) == 0) {
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

// What was fetched and is absent now, was needed and changed: it is fetched before it is missed,
// all of it at once.  What is there still may be dropped next time; some of it is remembered.  Now
// and then all is left out, to see what is still needed: the more seldom the longer nothing else
// was.
hanare_status HomeMemory::refresh(std::span<const Update> updates) noexcept {
    const sys::SignalBlock no_signals;
    const std::lock_guard guard(release_lock_);
    std::span<const uint32_t> fetched = fetched_.take();
    for (const uint32_t block : fetched) state(block).fetch_and(~State::kFetched);
    if (expected_ > 0 && fetched.size() > expected_ + expected_ / 8) pause_ = kPauseMin;
    refreshed_blocks_ += fetched.size();
    if (!fetched.empty()) ++refreshes_;
    if (refreshes_ >= pause_ && refreshed_blocks_ >= kPauseBlocks) {
        fetched = {};
        refreshes_ = 0;
        refreshed_blocks_ = 0;
        pause_ = std::min(2 * pause_, kPauseMax);
    }
    // What another thread has just sent home, it has not said yet.
    const bool counts = early_.runs().empty();
    hanare_status status = counts ? take_updates(updates, fetched) : HANARE_STATUS_OK;
    if (status == HANARE_STATUS_OK) status = fetch_all_again(fetched, After::kBarrier);
    expected_ = fetched_.count();
    if (dropped_.count() > kDroppedMax) trim();
    return status;
}

void HomeMemory::fetch_before_missed(std::span<const uint32_t> blocks) noexcept {
    if (blocks.empty()) return;
    const sys::SignalBlock no_signals;
    const std::lock_guard guard(release_lock_);
    fetch_all_again(blocks, After::kLock);
}

hanare_status HomeMemory::fetch_all_again(std::span<const uint32_t> fetched, After after) noexcept {
    hanare_status first = HANARE_STATUS_OK;
    uint32_t remembered = after == After::kBarrier ? 0 : kRememberedMax;
    while (!fetched.empty()) {
        size_t used = 0;
        const hanare_status status = fetch_again(fetched, after, used, remembered);
        if (first == HANARE_STATUS_OK) first = status;
        fetched = fetched.subspan(used);
    }
    return first;
}

// As many of them as one time allows: the first `used`.
hanare_status HomeMemory::fetch_again(std::span<const uint32_t> fetched, After after, size_t& used,
                                      uint32_t& remembered) noexcept {
    auto& fetches = again_;
    size_t count = 0;
    std::ranges::fill(snapshots_, 0);
    for (used = 0; used < fetched.size(); ++used) {
        const uint32_t block = fetched[used];
        uint32_t seen = 0;
        if (!try_take(block, seen)) continue;
        // Where it was at home and is not fetched from the new one yet, it is left to a fault; so
        // is what was never here.
        if ((seen & State::kInTransit) != 0 || (seen & State::kHomeKnown) == 0) {
            give_back(block);
            continue;
        }
        if (State::rights(seen) != State::kAbsent || (seen & State::kHomeHere) != 0) {
            const bool is_copy = (seen & State::kHomeHere) == 0;
            if (is_copy && remembered++ < kRememberedMax) remember(block);
            give_back(block);
            continue;
        }
        const uint32_t home = State::home(seen);
        const bool has_snapshot = snapshots_[home] < kSnapshotBlocksMax;
        const bool is_needed = State::is_needed(seen);
        if (count > 0 && fetches[count - 1]->home() == home && fetches[count - 1]->follows(block) &&
            fetches[count - 1]->is_snapshot() == has_snapshot &&
            fetches[count - 1]->asks_first() == is_needed &&
            fetches[count - 1]->run().count < Fetch::kBlocksMax) {
            fetches[count - 1]->extend();
        } else if (count == fetches.size()) {
            give_back(block);
            break;
        } else {
            Fetch::How how = {.asks_first = is_needed};
            if (has_snapshot) {
                how.kind = QuestionKind::kSnapshot;
                how.place = snapshots_[home];
                how.each_barrier = after == After::kBarrier;
            }
            fetches[count++].emplace(home, Run{block, 1}, how);
        }
        if (has_snapshot) ++snapshots_[home];
    }
    const std::span begun(fetches.data(), count);
    for (auto& fetch : begun) fetch->begin(peers_, segment_);
    hanare_status first = HANARE_STATUS_OK;
    for (auto& fetch : begun) {
        hanare_status status = fetch->end(peers_, segment_);
        const Run run = fetch->run();
        // What has another home by now is left to a fault.
        const uint32_t come = status == HANARE_STATUS_OK ? fetch->count() : 0;
        if (come > 0 && map(run.first, come, true) != 0) status = HANARE_STATUS_SYSTEM;
        Counters::add(counters_.fetched_blocks, status == HANARE_STATUS_OK ? come : 0);
        if (auto* const watch = counters_.watch; watch != nullptr && come > 0) {
            watch->note_fetched(run.first, come);
        }
        for (uint32_t block = run.first; block < run.first + run.count; ++block) {
            if (status == HANARE_STATUS_OK && block < run.first + come) note_fetched(block);
            give_back(block);
        }
        if (first == HANARE_STATUS_OK) first = status;
    }
    return first;
}

}  // namespace hanare::dsm
