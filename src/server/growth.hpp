// SPDX-License-Identifier: Apache-2.0
//
// How a lease grows: by how much, and out of which pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fabric/exposed_regions.hpp"
#include "server/arena.hpp"

namespace hanare::server {

struct GrowthCase {
    uint64_t wanted_bytes = 0;       // to have in total
    uint64_t leased_bytes = 0;       // that it has; less
    uint64_t quota_bytes = 0;        // that it may have in total
    uint64_t tenant_left_bytes = 0;  // that all leases of its tenant may still get; whole extents
    size_t extents = 0;              // that it has
    size_t regions = 0;              // that all leases have
    Arena::Room room = {};
};
// A lease grows by more than it asks for: both it and the server have few extents, and clients that
// ask slot by slot would use them up long before the memory.  How much more is a part of what is
// left, so that the last memory goes by small steps to whoever asks, and a part of what the lease
// has, so that little is leased in vain; only where extents become scarce, more.
struct Growth {
    hanare_status status = HANARE_STATUS_OK;  // STORE_FULL; BUSY: enough when it is wiped
    uint64_t least_bytes = 0;                 // what is missing
    uint64_t best_bytes = 0;                  // what makes few extents: not less
};
Growth growth_of(const GrowthCase& given) noexcept;

// A piece of the arena that is exposed as a region.
struct ExposedPiece {
    std::span<std::byte> memory;
    fabric::Capability capability;  // without rights: it is not exposed yet
};

// Pieces on their way into a lease: they go back, untouched, unless it takes them.
class NewPieces {
public:
    NewPieces(Arena& arena, fabric::ExposedRegions& regions) : arena_(arena), regions_(regions) {}
    ~NewPieces();
    NewPieces(const NewPieces&) = delete;
    NewPieces& operator=(const NewPieces&) = delete;

    // In one piece, or exactly the least in as many as it takes.  LIMIT: more than `pieces_max`, or
    // no more regions; STORE_FULL; SYSTEM.
    hanare_status get(const Growth& growth, size_t pieces_max);
    // Behind what is there; the bytes.
    uint64_t move_to(std::vector<ExposedPiece>& pieces);

private:
    hanare_status allocate(const Growth& growth, size_t pieces_max);

    Arena& arena_;
    fabric::ExposedRegions& regions_;
    std::vector<ExposedPiece> pieces_;
};

}  // namespace hanare::server
