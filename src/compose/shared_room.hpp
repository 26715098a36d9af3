// SPDX-License-Identifier: Apache-2.0
//
// SharedRoom: what the processes of forked children know in common of a composed store: how much of
// each member is in use, and which are lost.  Chunks are given out once: what a group has left
// stays unused.
//
// Any thread of any of the processes, async-signal-safe, but for make(): nothing is locked, so that
// a process may be killed at any instruction; a chunk is wasted then at most.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "base/result.hpp"
#include "compose/group_table.hpp"
#include "compose/layout.hpp"
#include "compose/members.hpp"
#include "sys/memory.hpp"

namespace hanare::compose {

class SharedRoom {
public:
    // The members have their states there from now on.
    static Result<SharedRoom> make(Members& members);

    // Gives the group its chunks, or finds them, so that this process can use them.  STORE_FULL;
    // another status: of a member that has failed, where none may.
    hanare_status cover(const Layout& layout, Members& members, const Group& group) noexcept;

    // One more of this member; none: it has no room.
    std::optional<Place> take_chunk(Members& members, uint32_t number) noexcept;

    // Groups below this number may have chunks: before they get any.
    void note_groups(uint64_t end) noexcept;
    uint64_t groups_end() const noexcept { return shared().groups_end.load(); }

private:
    struct Shared {
        std::atomic<uint64_t> groups_end;
        std::array<std::atomic<uint64_t>, Members::kMembersMax> used_chunks;
        std::array<std::atomic<Member::State>, Members::kMembersMax> states;
    };

    explicit SharedRoom(sys::Mapping memory) noexcept : memory_(std::move(memory)) {}
    Shared& shared() const noexcept { return *reinterpret_cast<Shared*>(memory_.address()); }
    hanare_status take(Member& member, uint32_t number, Place& place) noexcept;
    hanare_status give(const Layout& layout, Members& members, const Group& group, uint32_t role,
                       uint64_t used) noexcept;

    sys::Mapping memory_;
};

}  // namespace hanare::compose
