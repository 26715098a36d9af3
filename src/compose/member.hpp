// SPDX-License-Identifier: Apache-2.0
//
// Member: one of the stores that a composed store is made of.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/thread_annotations.hpp"
#include "compose/layout.hpp"
#include "store/store.hpp"
#include "sys/lock.hpp"

namespace hanare::compose {

// What transfers that are waited for have under way with different members at the same time: each
// of them uses one lane.
inline constexpr uint32_t kLanes = 16;

class Member {
public:
    enum class State : uint8_t {
        kGood,
        kLeaving,  // what it keeps moves elsewhere; until then it is used
        kGone,     // it has left, nothing is there any more
        kLost,     // it has failed: nothing that it says is heard
    };

    // Of a store of this kind.
    Member(std::unique_ptr<store::Store> store, Kind outer);

    store::Store& store() const noexcept { return *store_; }
    const std::string& name() const noexcept { return name_; }
    // nullptr: only transfers that are waited for.  Of one lane, by one thread at a time.
    store::SharedTransfers* lane(uint32_t number) noexcept { return lanes_[number].get(); }

    // What faults start on it, of whom there is one (composed_transfers.hpp); nullptr: nothing can
    // be.
    store::SharedTransfers* transfers() const noexcept { return transfers_.get(); }
    // Nobody takes them any more.
    void end_transfers() noexcept { transfers_.reset(); }

    // From now on its state is there, for other processes, too.
    void share_state(std::atomic<State>& state) noexcept {
        state.store(state_->load());
        state_ = &state;
    }
    State state() const noexcept { return state_->load(); }
    bool is_lost() const noexcept { return state() == State::kLost; }
    bool is_used() const noexcept { return state() <= State::kLeaving; }
    bool takes_chunks() const noexcept { return state() == State::kGood; }
    // Whether it was used before: what has left is not lost.
    bool set_lost() noexcept;
    // Whether it was so; not if it is lost meanwhile.
    bool change(State from, State to) noexcept { return state_->compare_exchange_strong(from, to); }

    // Chunks that have come along with others, and are nobody's.  Any thread.
    std::optional<uint64_t> take_spare();
    void add_spare(uint64_t offset);

    // Nothing of it is used any more.  A process that has no connections of its own to it, since it
    // was lost when that process was forked, may not ask it for anything.
    void give_up() noexcept {
        if (!is_parents_) store_->give_up();
    }
    void leave_to_parent() noexcept { is_parents_ = true; }

    // Chunks that groups have there, or are about to get: counted before it is asked for one, so
    // that it does not go meanwhile.
    std::atomic<uint64_t> chunks{0};

private:
    const std::unique_ptr<store::Store> store_;
    const std::string name_;
    std::array<std::unique_ptr<store::SharedTransfers>, kLanes> lanes_;
    std::unique_ptr<store::SharedTransfers> transfers_;
    std::atomic<State> own_state_{State::kGood};
    std::atomic<State>* state_ = &own_state_;
    bool is_parents_ = false;
    sys::RankedLock spares_lock_{sys::LockRank::kLeaf};
    std::vector<uint64_t> spares_ HANARE_GUARDED_BY(spares_lock_);
};

}  // namespace hanare::compose
