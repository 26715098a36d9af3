// SPDX-License-Identifier: Apache-2.0
//
// Of which pieces, each in one chunk, a transfer of a group's bytes is made where nothing has to be
// read for it, or made again.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "compose/exclusive_or.hpp"
#include "compose/layout.hpp"
#include "store/store.hpp"

namespace hanare::compose {

// Which chunks of a group can be used.
struct Roles {
    std::array<bool, Layout::kRolesMax> is_there = {};
    uint32_t lost = 0;
};

// Whether the transfer is of that kind.
inline bool has_plain_pieces(const Layout& layout, const Roles& roles,
                             const store::IoRequest& request) noexcept {
    if (roles.lost > layout.spares()) return false;
    if (layout.kind != Kind::kParity) return true;
    if (request.kind == store::IoKind::kRead) return roles.lost == 0;
    const uint64_t stripe = layout.stripe_bytes();
    return request.offset % stripe == 0 && request.bytes % stripe == 0;
}

// How many those are at most.
struct PieceCounts {
    size_t pieces;
    size_t parities;
};
inline PieceCounts most_pieces(const Layout& layout, const store::IoRequest& request) noexcept {
    if (layout.kind != Kind::kParity) return {.pieces = layout.total, .parities = 0};
    if (request.kind == store::IoKind::kRead) {
        return {.pieces = request.bytes / layout.strip_bytes + 2, .parities = 0};
    }
    const size_t stripes = request.bytes / layout.stripe_bytes();
    return {.pieces = stripes * layout.total, .parities = stripes};
}

// Calls add(role, offset in the chunk, memory, bytes, parity) for each.  `parity`: the memory that
// take_parity() gave, if it is a strip of parity; else nullptr.
template <typename Add, typename TakeParity>
void for_each_piece(const Layout& layout, const Roles& roles, const store::IoRequest& request,
                    Add add, TakeParity take_parity) noexcept {
    constexpr std::byte* kNoParity = nullptr;
    const bool is_read = request.kind == store::IoKind::kRead;
    uint64_t within = request.offset % layout.group_bytes();
    std::byte* memory = request.memory;
    std::byte* const end = memory + request.bytes;
    const size_t strip = layout.strip_bytes;
    if (layout.kind != Kind::kParity && is_read) {
        // Blocks take turns with the copies.
        auto role = static_cast<uint32_t>(request.offset / request.bytes % layout.total);
        while (!roles.is_there[role]) role = (role + 1) % layout.total;
        add(role, within, memory, request.bytes, kNoParity);
    } else if (layout.kind != Kind::kParity) {
        for (uint32_t role = 0; role < layout.total; ++role) {
            if (roles.is_there[role]) add(role, within, memory, request.bytes, kNoParity);
        }
    } else if (is_read) {
        while (memory != end) {
            const Layout::Spot spot = layout.spot_of(within);
            const auto part = std::min(static_cast<size_t>(end - memory), size_t{spot.bytes});
            add(spot.role, spot.offset, memory, part, kNoParity);
            within += part;
            memory += part;
        }
    } else {
        for (; memory != end; memory += layout.stripe_bytes(), within += layout.stripe_bytes()) {
            const uint64_t offset = layout.spot_of(within).offset;
            if (roles.is_there[layout.data]) {
                std::byte* const parity = take_parity();
                exclusive_or_of(parity, memory, strip, layout.data);
                add(layout.data, offset, parity, strip, parity);
            }
            for (uint32_t role = 0; role < layout.data; ++role) {
                if (!roles.is_there[role]) continue;
                add(role, offset, memory + role * strip, strip, kNoParity);
            }
        }
    }
}

}  // namespace hanare::compose
