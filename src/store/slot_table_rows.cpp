// SPDX-License-Identifier: Apache-2.0
//
// Rows: who takes part in a SlotTable, who does no longer, and what becomes of the slots.
//
// A process is alive as long as its memory is, and that is what a row's lock tells (sys/life_lock).
// begin_child() takes the lock of the child's row before the fork, and the child inherits it:
//   fork fails             child_failed() clears the bits and lets go.
//   parent killed before   the lock goes with its memory: the row is dead.
//   parent killed after    the child has the lock: the row is alive, named or not.
//   child killed early     the parent lets go in child_started(): dead from then on.
// Where the lock cannot be taken (no /proc, no descriptor left, another user) the row goes by the
// pid.  Then exec is not seen, an ended process counts until its parent has waited for it, and a
// row without a pid (its parent was killed between begin_child() and what follows it) counts as
// alive for ever: it may be, and to take a living one's slots away would be worse.
//
// A dead row is swept by one process, so that the bits cleared are never those of the row's next
// holder: its state names the sweeper's row.  When that one dies, too, whoever sweeps it takes over
// what it was sweeping.  A stopped sweeper delays what it has begun, nothing else.
#include <cerrno>
#include <unistd.h>

#include "store/slot_table_shared.hpp"

namespace hanare::store {

SlotTable::~SlotTable() {
    if (memory_.address() == nullptr || row_ == kNoRow) return;
    if (getpid() != pid_) {
        own_lock_.forget();
        return;
    }
    // For rows that go by the pid.
    Row own = shared_->rows[row_].load(std::memory_order_relaxed);
    own.state = RowState::kLeft;
    shared_->rows[row_].store(own, std::memory_order_release);
}

std::optional<uint32_t> SlotTable::begin_child(GiveBack give_back) noexcept {
    std::optional<uint32_t> row = claim_row();
    if (!row) {
        sweep(give_back);
        row = claim_row();
    }
    if (!row) return row;
    const uint64_t child = uint64_t{1} << *row;
    const uint32_t end = shared_->high_water.load(std::memory_order_acquire);
    for (uint32_t slot = 0; slot < end; ++slot) {
        if ((masks_[slot].load(std::memory_order_relaxed) & own_) != 0) {
            masks_[slot].fetch_or(child, std::memory_order_relaxed);
        }
    }
    return row;
}

void SlotTable::child_started(uint32_t row, pid_t pid) noexcept {
    // The child may have named itself, as it sees itself; others see more of what the parent sees.
    Row seen = shared_->rows[row].load(std::memory_order_relaxed);
    while (seen.state == starting_.state && seen.generation == starting_.generation) {
        Row named = seen;
        named.pid = static_cast<uint32_t>(pid);
        if (shared_->rows[row].compare_exchange_weak(seen, named, std::memory_order_acq_rel)) break;
    }
    starting_lock_.release();
}

void SlotTable::child_failed(uint32_t row) noexcept {
    Row claimed = starting_;
    const Row swept{.state = RowState::kSweeping,
                    .sweeper = static_cast<uint8_t>(row_),
                    .generation = claimed.generation,
                    .pid = 0};
    const bool is_ours =
        shared_->rows[row].compare_exchange_strong(claimed, swept, std::memory_order_acq_rel);
    starting_lock_.release();
    if (!is_ours) return;
    clear_rows(uint64_t{1} << row, {});
    free_rows(uint64_t{1} << row);
}

void SlotTable::become_child(uint32_t row) noexcept {
    own_lock_.forget();  // the parent keeps it from its children
    own_lock_ = std::move(starting_lock_);
    own_lock_.keep_from_children();
    pid_ = getpid();
    row_ = row;
    own_ = uint64_t{1} << row;
    Row claimed = starting_;
    Row named = starting_;
    named.pid = static_cast<uint32_t>(pid_);
    shared_->rows[row].compare_exchange_strong(claimed, named, std::memory_order_acq_rel);
}

void SlotTable::abandon_in_child() noexcept {
    own_lock_.forget();
    row_ = kNoRow;
    memory_ = sys::Mapping();
}

uint32_t SlotTable::sweep(GiveBack give_back) noexcept {
    const uint64_t dead = claim_dead_rows();
    if (dead == 0) return 0;
    // Where that fails they stay claimed, for others once this process has ended.
    if (fence_.function != nullptr && !fence_.function(fence_.context, dead)) return 0;
    const uint32_t freed = clear_rows(dead, give_back);
    recount();
    free_rows(dead);
    return freed;
}

bool SlotTable::is_alone() noexcept {
    const auto has_others = [this] {
        for (uint32_t row = 0; row < kRows; ++row) {
            const Row seen = shared_->rows[row].load(std::memory_order_acquire);
            if (row != row_ && seen.state != RowState::kFree) return true;
        }
        return false;
    };
    if (!has_others()) return true;
    sweep();
    return !has_others();
}

// Whether lock_file_ still is the file with the locks.  A program may have closed the descriptor,
// or all it knows nothing of, and have opened something else, where nothing is locked and everybody
// would seem dead.
bool SlotTable::sees_locks() const noexcept {
    bool is_taken = false;
    return own_lock_.is_held() && sys::LifeLock::look(lock_file_, row_, is_taken) == 0 && is_taken;
}

// `claimed`: the rows that the caller is sweeping.
bool SlotTable::is_dead(uint32_t row, const Row& seen, uint64_t claimed) const noexcept {
    bool is_taken = true;
    switch (seen.state) {
        case RowState::kFree: return false;
        case RowState::kLeft: return true;
        case RowState::kSweeping: return (claimed >> seen.sweeper & 1) != 0;
        case RowState::kByPid:
            return seen.pid != 0 && !sys::process_exists(static_cast<pid_t>(seen.pid));
        case RowState::kByLock:
            return sys::LifeLock::look(lock_file_, row, is_taken) == 0 && !is_taken && sees_locks();
    }
    return false;
}

// The lock comes before the row: nobody may see a row that goes by its lock without that while its
// holder lives.
std::optional<uint32_t> SlotTable::claim_row() noexcept {
    const bool can_lock = row_ == kNoRow || sees_locks();
    for (uint32_t row = 0; row < kRows; ++row) {
        Row seen = shared_->rows[row].load(std::memory_order_acquire);
        if (seen.state != RowState::kFree) continue;
        sys::LifeLock lock;
        const int error = can_lock ? sys::LifeLock::take(lock_file_, row, lock) : ENOLCK;
        if (error == EAGAIN) continue;  // another is about to have the row
        const Row claimed{.state = error == 0 ? RowState::kByLock : RowState::kByPid,
                          .sweeper = 0,
                          .generation = static_cast<uint16_t>(seen.generation + 1),
                          .pid = 0};
        if (!shared_->rows[row].compare_exchange_strong(seen, claimed, std::memory_order_acq_rel))
            continue;
        starting_ = claimed;
        starting_lock_ = std::move(lock);
        return row;
    }
    return std::nullopt;
}

uint64_t SlotTable::claim_dead_rows() noexcept {
    uint64_t claimed = 0;
    for (bool is_settled = false; !is_settled;) {
        is_settled = true;
        for (uint32_t row = 0; row < kRows; ++row) {
            if (row == row_ || (claimed >> row & 1) != 0) continue;
            Row seen = shared_->rows[row].load(std::memory_order_acquire);
            if (!is_dead(row, seen, claimed)) continue;
            const Row swept{.state = RowState::kSweeping,
                            .sweeper = static_cast<uint8_t>(row_),
                            .generation = seen.generation,
                            .pid = 0};
            if (!shared_->rows[row].compare_exchange_strong(seen, swept, std::memory_order_acq_rel))
                continue;
            claimed |= uint64_t{1} << row;
            is_settled = false;  // what it was sweeping is ours now
        }
    }
    return claimed;
}

// True when nobody but the dead held it: then it is this process's, until set_free().
bool SlotTable::take_over(uint32_t slot, uint64_t dead) noexcept {
    uint64_t mask = masks_[slot].load(std::memory_order_acquire);
    while ((mask & dead) != 0) {
        const uint64_t rest = mask & ~dead;
        if (masks_[slot].compare_exchange_weak(mask, rest != 0 ? rest : own_,
                                               std::memory_order_acq_rel)) {
            return rest == 0;
        }
    }
    return false;
}

uint32_t SlotTable::clear_rows(uint64_t dead, GiveBack give_back) noexcept {
    uint32_t freed = 0;
    uint32_t first = 0;
    uint32_t count = 0;
    const auto end_run = [&] {
        if (count == 0) return;
        if (give_back.function != nullptr) give_back.function(give_back.context, first, count);
        freed += set_free(first, count);
        count = 0;
    };
    const uint32_t end = shared_->high_water.load(std::memory_order_acquire);
    for (uint32_t slot = 0; slot < end; ++slot) {
        if (!take_over(slot, dead)) {
            end_run();
        } else if (count++ == 0) {
            first = slot;
        }
    }
    end_run();
    return freed;
}

void SlotTable::free_rows(uint64_t dead) noexcept {
    for (uint32_t row = 0; row < kRows; ++row) {
        if ((dead >> row & 1) == 0) continue;
        const Row swept = shared_->rows[row].load(std::memory_order_relaxed);
        const Row free{
            .state = RowState::kFree, .sweeper = 0, .generation = swept.generation, .pid = 0};
        shared_->rows[row].store(free, std::memory_order_release);
    }
}

// The dead may have taken or released a slot and not have counted it.  Where others change the
// count all the time, that waits for another sweep.
void SlotTable::recount() noexcept {
    constexpr int kAttempts = 3;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        uint64_t before = shared_->count.load(std::memory_order_acquire);
        const uint32_t end = shared_->high_water.load(std::memory_order_acquire);
        uint64_t used = 0;
        for (uint32_t slot = 0; slot < end; ++slot) {
            if (masks_[slot].load(std::memory_order_acquire) != 0) ++used;
        }
        const uint64_t after = (before / Shared::kChange + 1) * Shared::kChange + used;
        if (shared_->count.compare_exchange_strong(before, after, std::memory_order_acq_rel))
            return;
    }
}

}  // namespace hanare::store
