// SPDX-License-Identifier: Apache-2.0
//
// Members: the stores that a composed store is made of, in the order in which they are filled.
// There may be more of them, never fewer.
//
// Any thread.  What transfers need is async-signal-safe; add() and take_chunk() are not.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "compose/group_table.hpp"
#include "compose/member.hpp"
#include "sys/lock.hpp"

namespace hanare::compose {

class Members {
public:
    static constexpr uint32_t kMembersMax = 64;

    // Of a store of this kind.
    explicit Members(Kind kind) : kind_(kind) {}

    // LIMIT: there are too many.  What other processes have to know of it is done before.
    Result<void> add(std::unique_ptr<store::Store> store);
    // From now on the states of all, also of those that come later, are there, for other processes.
    void share_states(std::atomic<Member::State>* states) noexcept;
    uint32_t count() const noexcept { return count_.load(std::memory_order_acquire); }
    Member& operator[](uint32_t number) const noexcept { return *members_[number]; }

    // A chunk of the first member that has room for one and is none of `used` (bits); members that
    // turn out to have none are added to `full`.
    std::optional<Place> take_chunk(uint64_t used, uint64_t& full);
    void give_back(Place place) noexcept;

    // A transfer of it has failed: from now on it is not asked.  False: it is kept, since as many
    // as `spares` have failed already and it may still be of use; it may lack what was written.
    bool lose(Member& member, uint32_t spares) noexcept;
    // Those whose chunks are not all made again on others.
    uint32_t lost() const noexcept;
    // A lost one of which no group has a chunk is gone from now on, if the others are enough for a
    // group of `total` chunks: what it should have need not be made up for any more.  Whether it
    // is.
    bool finish_lost(Member& member, uint32_t total) noexcept;
    // Those that take chunks.
    uint32_t good() const noexcept;
    // A place on one that is lost and is none of `used`, for what redundancy makes up for; none:
    // there are not so many.
    std::optional<Place> place_on_lost(uint64_t used) noexcept;
    // Whether take_chunk() might succeed.
    bool may_have_chunk(uint64_t used, uint64_t full) const noexcept;

    // From now on lose() says so itself, in one line.
    void say_what_is_lost() noexcept { says_lost_ = true; }

    // Changes whenever something has happened to members; a futex word.
    const std::atomic<uint32_t>& changes() const noexcept { return changes_; }
    void note_change() noexcept;

    // Of the first that has failed; nullptr if not more than `spares` have.
    const char* trouble(uint32_t spares) const noexcept;
    int last_errno() const noexcept;
    // "A, B": for messages.
    std::string names() const;

private:
    const Kind kind_;
    std::array<std::unique_ptr<Member>, kMembersMax> members_;
    std::atomic<uint32_t> count_{0};
    std::atomic<uint32_t> changes_{0};
    bool says_lost_ = false;
    std::atomic<Member::State>* states_ = nullptr;  // that are shared; by number
    std::optional<Place> take_unit(Member& member, uint32_t number);
    uint32_t failed() const noexcept;
    sys::RankedLock add_lock_{sys::LockRank::kLeaf};
    // Members are lost one after the other, and are not gone while they get a place.
    sys::RankedLock losses_lock_{sys::LockRank::kLeaf};
};

}  // namespace hanare::compose
