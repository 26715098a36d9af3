// SPDX-License-Identifier: Apache-2.0
#include "compose/group_io.hpp"

#include <algorithm>
#include <cstring>
#include <ranges>

#include "compose/exclusive_or.hpp"
#include "sys/signal.hpp"

namespace hanare::compose {

namespace {

using store::IoKind;

// Reads of copies take turns so far apart.
constexpr uint64_t kTurnBytes = 256 * kKiB;

bool has_failed(const Piece& piece) { return piece.request.status != HANARE_STATUS_OK; }

}  // namespace

Member* GroupIo::member_of(const Group& group, uint32_t role) const noexcept {
    const auto place = group.place(role);
    if (!place) return nullptr;
    Member& member = members_[place->member];
    // Of one that is gone groups have no chunks, but may be given places for a moment.
    const bool is_gone = layout_.spares() != 0 && !member.is_used();
    return member.is_lost() || is_gone ? nullptr : &member;
}

hanare_status GroupIo::note(Member& member, hanare_status status) noexcept {
    if (status != HANARE_STATUS_OK && layout_.spares() != 0) {
        members_.lose(member, layout_.spares());
    }
    return status;
}

// Without a member: it is lost.
Piece GroupIo::piece_of(const Group& group, uint32_t role, IoKind kind, uint64_t offset,
                        std::byte* memory, size_t bytes) const noexcept {
    Piece piece;
    piece.role = role;
    piece.member = member_of(group, role);
    piece.request.kind = kind;
    piece.request.offset = group.place(role)->offset + offset;
    piece.request.memory = memory;
    piece.request.bytes = bytes;
    return piece;
}

// How many have failed.  Where that is all of them, it may be this process that cannot: members
// that are well are kept.
uint32_t GroupIo::read_pieces(Lane& lane, std::span<Piece> pieces) noexcept {
    lane.carry_out(pieces);
    const auto failed = static_cast<uint32_t>(std::ranges::count_if(pieces, has_failed));
    const bool is_all = failed == pieces.size() && failed > 1;
    for (const Piece& piece : pieces) {
        if (is_all && piece.member->store().trouble() == nullptr) continue;
        note(*piece.member, piece.request.status);
    }
    return failed;
}

// Of one group, `needed` of which have to be there afterwards.  A member that has failed has what
// was there before: the write is not done unless it is lost for that.  Where too many fail to do
// without them, it may be this process that cannot (a limit of file sizes, a full disk): members
// that are well are kept.
hanare_status GroupIo::write_pieces(Lane& lane, std::span<Piece> pieces, size_t needed) noexcept {
    lane.carry_out(pieces);
    const auto failed = static_cast<size_t>(std::ranges::count_if(pieces, has_failed));
    const bool is_in_vain = pieces.size() - failed < needed;
    hanare_status first = HANARE_STATUS_STORE_IO;
    bool is_one_kept = false;
    for (const Piece& piece : std::views::reverse(pieces)) {
        if (!has_failed(piece)) continue;
        first = piece.request.status;
        if (is_in_vain && piece.member->store().trouble() == nullptr) continue;
        if (layout_.spares() == 0 || !members_.lose(*piece.member, layout_.spares())) {
            is_one_kept = true;
        }
    }
    // Others may have lost some meanwhile.
    const auto is_there = [](const Piece& piece) {
        return !has_failed(piece) && !piece.member->is_lost();
    };
    const auto there = static_cast<size_t>(std::ranges::count_if(pieces, is_there));
    return is_one_kept || there < needed ? first : HANARE_STATUS_OK;
}

Roles GroupIo::roles_of(const Group& group) const noexcept {
    Roles roles;
    for (uint32_t role = 0; role < layout_.total; ++role) {
        roles.is_there[role] = member_of(group, role) != nullptr;
        if (!roles.is_there[role]) ++roles.lost;
    }
    return roles;
}

// From its member, or made again from all others.
bool GroupIo::can_be_had(const Group& group, uint32_t role) const noexcept {
    const Roles roles = roles_of(group);
    return roles.is_there[role] || roles.lost <= layout_.spares();
}

GroupIo::StripeLock& GroupIo::lock_of(const Group& group, uint64_t chunk_offset) noexcept {
    const uint64_t stripe = chunk_offset / layout_.strip_bytes;
    return locks_[(group.number() + stripe) % kLocks];
}

hanare_status GroupIo::read(const Group& group, uint64_t offset, std::byte* memory,
                            size_t bytes) noexcept {
    const sys::SignalBlock no_signals;
    if (layout_.kind != Kind::kParity) return read_copy(group, offset, memory, bytes);
    while (bytes != 0) {
        const uint64_t to_end = layout_.stripe_bytes() - offset % layout_.stripe_bytes();
        const size_t part = std::min<size_t>(bytes, to_end);
        const hanare_status status = read_stripe(group, offset, memory, part);
        if (status != HANARE_STATUS_OK) return status;
        offset += part;
        memory += part;
        bytes -= part;
    }
    return HANARE_STATUS_OK;
}

hanare_status GroupIo::write(const Group& group, uint64_t offset, const std::byte* given,
                             size_t bytes) noexcept {
    const sys::SignalBlock no_signals;
    group.note_written();
    auto* memory = const_cast<std::byte*>(given);  // transfers of both kinds have a place for it
    if (layout_.kind != Kind::kParity) return write_copies(group, offset, memory, bytes);
    hanare_status status = HANARE_STATUS_OK;
    while (bytes != 0 && status == HANARE_STATUS_OK) {
        const Layout::Spot spot = layout_.spot_of(offset);
        const bool is_whole =
            offset % layout_.stripe_bytes() == 0 && bytes >= layout_.stripe_bytes();
        const size_t part = is_whole ? layout_.stripe_bytes() : std::min<size_t>(bytes, spot.bytes);
        status = is_whole ? write_stripe(group, spot.offset, memory)
                          : change_strip(group, spot.role, spot.offset, memory, part);
        offset += part;
        memory += part;
        bytes -= part;
    }
    return status;
}

void GroupIo::carry_out(const Group& group, store::IoRequest& request) noexcept {
    uint64_t within = request.offset % layout_.group_bytes();
    const bool is_read = request.kind == IoKind::kRead;
    if (!group.place(0)) {
        request.status = HANARE_STATUS_OUT_OF_RANGE;
    } else {
        request.status = is_read ? read(group, within, request.memory, request.bytes)
                                 : write(group, within, request.memory, request.bytes);
    }
    if (is_read || request.status == HANARE_STATUS_OK || layout_.kind != Kind::kParity) return;
    for (const uint64_t end = within + request.bytes; within < end;) {
        lock_of(group, layout_.spot_of(within).offset).has_torn.store(true);
        within += layout_.stripe_bytes() - within % layout_.stripe_bytes();
    }
}

hanare_status GroupIo::read_chunk(const Group& group, uint32_t role, uint64_t offset,
                                  std::byte* memory, size_t bytes) noexcept {
    const sys::SignalBlock no_signals;
    if (layout_.kind != Kind::kParity) return read_copy(group, offset, memory, bytes);
    if (Member* const member = member_of(group, role)) {
        const uint64_t at = group.place(role)->offset + offset;
        if (note(*member, member->store().read(at, memory, bytes)) == HANARE_STATUS_OK) {
            return HANARE_STATUS_OK;
        }
    }
    Lane lane(lanes_);
    hanare_status status = HANARE_STATUS_OK;
    while (bytes != 0 && status == HANARE_STATUS_OK) {
        const size_t part =
            std::min<size_t>(bytes, layout_.strip_bytes - offset % layout_.strip_bytes);
        status = make_again(lane, group, role, offset, memory, part);
        offset += part;
        memory += part;
        bytes -= part;
    }
    return status;
}

// ---- list and mirror

hanare_status GroupIo::read_copy(const Group& group, uint64_t offset, std::byte* memory,
                                 size_t bytes) noexcept {
    hanare_status status = HANARE_STATUS_STORE_IO;
    for (uint32_t turn = 0; turn < layout_.total; ++turn) {
        const auto role = static_cast<uint32_t>((offset / kTurnBytes + turn) % layout_.total);
        Member* const member = member_of(group, role);
        if (member == nullptr) continue;
        const uint64_t at = group.place(role)->offset + offset;
        status = note(*member, member->store().read(at, memory, bytes));
        if (status == HANARE_STATUS_OK) break;
    }
    return status;
}

hanare_status GroupIo::write_copies(const Group& group, uint64_t offset, std::byte* memory,
                                    size_t bytes) noexcept {
    std::array<Piece, Layout::kRolesMax> pieces;
    size_t count = 0;
    for (uint32_t role = 0; role < layout_.total; ++role) {
        pieces[count] = piece_of(group, role, IoKind::kWrite, offset, memory, bytes);
        if (pieces[count].member != nullptr) ++count;
    }
    if (count == 0) return HANARE_STATUS_STORE_IO;
    Lane lane(lanes_);
    return write_pieces(lane, std::span(pieces).first(count), 1);
}

// ---- parity

// What lies in one stripe.
hanare_status GroupIo::read_stripe(const Group& group, uint64_t offset, std::byte* memory,
                                   size_t bytes) noexcept {
    std::array<Piece, Layout::kRolesMax> pieces;
    std::array<Piece, Layout::kRolesMax> lost;
    size_t count = 0;
    size_t lost_count = 0;
    while (bytes != 0) {
        const Layout::Spot spot = layout_.spot_of(offset);
        const size_t part = std::min<size_t>(bytes, spot.bytes);
        Piece piece = piece_of(group, spot.role, IoKind::kRead, spot.offset, memory, part);
        (piece.member != nullptr ? pieces[count++] : lost[lost_count++]) = piece;
        offset += part;
        memory += part;
        bytes -= part;
    }
    Lane lane(lanes_);
    read_pieces(lane, std::span(pieces).first(count));
    for (size_t i = 0; i < count; ++i) {
        if (has_failed(pieces[i])) lost[lost_count++] = pieces[i];
    }
    for (size_t i = 0; i < lost_count; ++i) {
        const store::IoRequest& request = lost[i].request;
        const uint64_t in_chunk = request.offset - group.place(lost[i].role)->offset;
        const sys::LockGuard guard(lock_of(group, in_chunk));
        const hanare_status status =
            make_again(lane, group, lost[i].role, in_chunk, request.memory, request.bytes);
        if (status != HANARE_STATUS_OK) return status;
    }
    return HANARE_STATUS_OK;
}

// A part of a strip, out of all others of its stripe.
hanare_status GroupIo::make_again(Lane& lane, const Group& group, uint32_t role, uint64_t offset,
                                  std::byte* memory, size_t bytes) noexcept {
    std::array<Piece, Layout::kRolesMax> pieces;
    size_t count = 0;
    for (uint32_t other = 0; other < layout_.total; ++other) {
        if (other == role) continue;
        pieces[count] = piece_of(group, other, IoKind::kRead, offset, lane.strip(other), bytes);
        if (pieces[count++].member == nullptr) return HANARE_STATUS_STORE_IO;
    }
    const auto others = std::span(pieces).first(count);
    if (read_pieces(lane, others) != 0) return HANARE_STATUS_STORE_IO;
    memset(memory, 0, bytes);
    for (const Piece& other : others) exclusive_or(memory, other.request.memory, bytes);
    return HANARE_STATUS_OK;
}

// A whole one: `offset` is that of its strips in their chunks.
hanare_status GroupIo::write_stripe(const Group& group, uint64_t offset,
                                    std::byte* memory) noexcept {
    const size_t bytes = layout_.strip_bytes;
    Lane lane(lanes_);
    std::byte* const parity = lane.strip(layout_.data);
    std::array<Piece, Layout::kRolesMax> pieces;
    size_t count = 0;
    exclusive_or_of(parity, memory, bytes, layout_.data);
    for (uint32_t role = 0; role < layout_.total; ++role) {
        std::byte* const strip = role < layout_.data ? memory + role * bytes : parity;
        pieces[count] = piece_of(group, role, IoKind::kWrite, offset, strip, bytes);
        if (pieces[count].member != nullptr) ++count;
    }
    if (count < layout_.data) return HANARE_STATUS_STORE_IO;
    const hanare_status status = write_pieces(lane, std::span(pieces).first(count), layout_.data);
    if (status != HANARE_STATUS_OK) lock_of(group, offset).has_torn.store(true);
    return status;
}

// A part of one strip, and the parity with it.
hanare_status GroupIo::change_strip(const Group& group, uint32_t role, uint64_t offset,
                                    std::byte* memory, size_t bytes) noexcept {
    Lane lane(lanes_);
    StripeLock& lock = lock_of(group, offset);
    const sys::LockGuard guard(lock);
    const uint32_t parity = layout_.data;
    const Parity made = make_parity(lane, group, role, offset, memory, bytes, !lock.has_torn);
    if (made == Parity::kUnknown) return HANARE_STATUS_STORE_IO;
    std::array<Piece, 2> pieces;
    size_t count = 0;
    pieces[0] = piece_of(group, role, IoKind::kWrite, offset, memory, bytes);
    if (pieces[0].member != nullptr) ++count;
    if (made == Parity::kMade) {
        pieces[count] = piece_of(group, parity, IoKind::kWrite, offset, lane.strip(parity), bytes);
        if (pieces[count].member != nullptr) ++count;
    }
    if (count == 0) return HANARE_STATUS_STORE_IO;
    // Without the parity the strip itself has to be there, and the other way round.
    const hanare_status status = write_pieces(lane, std::span(pieces).first(count), 1);
    if (status != HANARE_STATUS_OK) lock.has_torn.store(true);
    if (status == HANARE_STATUS_OK && !can_be_had(group, role)) return HANARE_STATUS_STORE_IO;
    return status;
}

// In its scratch strip: what it will be when the strip is `memory` there.  Where the old one may
// not be trusted, all strips tell; but if one of them is lost, it is so for good, should the old
// parity be wrong.
GroupIo::Parity GroupIo::make_parity(Lane& lane, const Group& group, uint32_t role, uint64_t offset,
                                     const std::byte* memory, size_t bytes,
                                     bool trusts_old) noexcept {
    const auto is_lost = [&] { return member_of(group, layout_.data) == nullptr; };
    const auto of_change = [&] {
        return make_parity_of_change(lane, group, role, offset, memory, bytes);
    };
    const auto of_all = [&] {
        return make_parity_of_all(lane, group, role, offset, memory, bytes);
    };
    const auto is_one_lost = [&] {
        for (uint32_t other = 0; other < layout_.data; ++other) {
            if (other != role && member_of(group, other) == nullptr) return true;
        }
        return false;
    };
    if (is_lost()) return Parity::kLost;
    if (trusts_old ? of_change() || of_all() : of_all() || (is_one_lost() && of_change())) {
        return Parity::kMade;
    }
    return is_lost() ? Parity::kLost : Parity::kUnknown;
}

bool GroupIo::make_parity_of_change(Lane& lane, const Group& group, uint32_t role, uint64_t offset,
                                    const std::byte* memory, size_t bytes) noexcept {
    const uint32_t parity = layout_.data;
    std::byte* const result = lane.strip(parity);
    std::byte* const old = lane.strip(role);
    std::array<Piece, 2> both = {piece_of(group, role, IoKind::kRead, offset, old, bytes),
                                 piece_of(group, parity, IoKind::kRead, offset, result, bytes)};
    if (both[0].member == nullptr || both[1].member == nullptr) return false;
    if (read_pieces(lane, both) != 0) return false;
    exclusive_or(result, old, bytes);
    exclusive_or(result, memory, bytes);
    return true;
}

bool GroupIo::make_parity_of_all(Lane& lane, const Group& group, uint32_t role, uint64_t offset,
                                 const std::byte* memory, size_t bytes) noexcept {
    const uint32_t parity = layout_.data;
    std::byte* const result = lane.strip(parity);
    std::array<Piece, Layout::kRolesMax> pieces;
    size_t count = 0;
    for (uint32_t other = 0; other < parity; ++other) {
        if (other == role) continue;
        pieces[count] = piece_of(group, other, IoKind::kRead, offset, lane.strip(other), bytes);
        if (pieces[count++].member == nullptr) return false;
    }
    if (read_pieces(lane, std::span(pieces).first(count)) != 0) return false;
    memcpy(result, memory, bytes);
    for (size_t i = 0; i < count; ++i) exclusive_or(result, pieces[i].request.memory, bytes);
    return true;
}

}  // namespace hanare::compose
