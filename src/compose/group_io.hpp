// SPDX-License-Identifier: Apache-2.0
//
// GroupIo: transfers of a group's bytes that are waited for, with all that redundancy asks for.
// What a lost member had is read from a copy, or made again from the other members of its stripe;
// what it should get is left to its copies, or to the parity.
//
// Who calls has entered the group, or closed it.  Any thread, async-signal-safe, nothing allocates.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/result.hpp"
#include "compose/group_table.hpp"
#include "compose/lanes.hpp"
#include "compose/layout.hpp"
#include "compose/members.hpp"
#include "compose/pieces.hpp"
#include "sys/lock.hpp"

namespace hanare::compose {

class GroupIo {
public:
    GroupIo(const Layout& layout, Members& members, Lanes lanes)
        : layout_(layout), members_(members), lanes_(std::move(lanes)) {}

    // Offsets in the group; multiples of 4 KiB.
    hanare_status read(const Group& group, uint64_t offset, std::byte* memory,
                       size_t bytes) noexcept;
    hanare_status write(const Group& group, uint64_t offset, const std::byte* memory,
                        size_t bytes) noexcept;
    // A request in the group, which gets its status.  Parts of it may have been written already, or
    // may have failed: what cannot be written then leaves all its stripes torn.
    void carry_out(const Group& group, store::IoRequest& request) noexcept;
    // Of one chunk, wherever it can be had from.
    hanare_status read_chunk(const Group& group, uint32_t role, uint64_t offset, std::byte* memory,
                             size_t bytes) noexcept;

    // The member that has the group's chunk of this role; nullptr if it is lost.
    Member* member_of(const Group& group, uint32_t role) const noexcept;
    Roles roles_of(const Group& group) const noexcept;
    // What has become of a transfer: where members may fail, one that has is lost.  Not of writes
    // of groups, which may not be done where it is kept.
    hanare_status note(Member& member, hanare_status status) noexcept;

private:
    using Lane = Lanes::Lane;
    static constexpr uint32_t kLocks = 64;
    struct StripeLock : sys::RankedLock {
        StripeLock() : RankedLock(sys::LockRank::kStripes) {}
        // The parity of one of its stripes may belong to nothing that is there: a write has failed
        // in some members of it and not in others, all of which are kept.
        std::atomic<bool> has_torn{false};
    };
    // What is to be written of a stripe's parity.
    enum class Parity {
        kMade,
        kLost,     // nothing: its member is lost
        kUnknown,  // it cannot be made, and may not be left as it is
    };

    Piece piece_of(const Group& group, uint32_t role, store::IoKind kind, uint64_t offset,
                   std::byte* memory, size_t bytes) const noexcept;
    uint32_t read_pieces(Lane& lane, std::span<Piece> pieces) noexcept;
    hanare_status write_pieces(Lane& lane, std::span<Piece> pieces, size_t needed) noexcept;
    bool can_be_had(const Group& group, uint32_t role) const noexcept;
    StripeLock& lock_of(const Group& group, uint64_t chunk_offset) noexcept;

    hanare_status read_copy(const Group& group, uint64_t offset, std::byte* memory,
                            size_t bytes) noexcept;
    hanare_status write_copies(const Group& group, uint64_t offset, std::byte* memory,
                               size_t bytes) noexcept;
    hanare_status read_stripe(const Group& group, uint64_t offset, std::byte* memory,
                              size_t bytes) noexcept;
    hanare_status make_again(Lane& lane, const Group& group, uint32_t role, uint64_t offset,
                             std::byte* memory, size_t bytes) noexcept;
    hanare_status write_stripe(const Group& group, uint64_t offset, std::byte* memory) noexcept;
    hanare_status change_strip(const Group& group, uint32_t role, uint64_t offset,
                               std::byte* memory, size_t bytes) noexcept;
    Parity make_parity(Lane& lane, const Group& group, uint32_t role, uint64_t offset,
                       const std::byte* memory, size_t bytes, bool trusts_old) noexcept;
    bool make_parity_of_change(Lane& lane, const Group& group, uint32_t role, uint64_t offset,
                               const std::byte* memory, size_t bytes) noexcept;
    bool make_parity_of_all(Lane& lane, const Group& group, uint32_t role, uint64_t offset,
                            const std::byte* memory, size_t bytes) noexcept;

    const Layout& layout_;
    Members& members_;
    Lanes lanes_;
    // Of stripes that are changed in part: parity belongs to one state of all its strips.
    std::array<StripeLock, kLocks> locks_;
};

}  // namespace hanare::compose
