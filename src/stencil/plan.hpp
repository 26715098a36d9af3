// SPDX-License-Identifier: Apache-2.0
//
// The sizes of a run: steps per pass, how far fronts advance in a chunk, tiles, rings.  From the
// memory that there is, the bandwidth of the file and the speed of the kernels, or as they were
// asked for.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "stencil/geometry.hpp"
#include "stencil/program.hpp"
#include "stencil/taps.hpp"

namespace hanare::stencil {

// What is measured, or assumed, before a run.
struct Speeds {
    double read_bytes_per_s = 0;
    double write_bytes_per_s = 0;
    double cell_updates_per_s = 0;  // of all threads
};

struct Wishes {
    uint64_t steps_per_pass = 0;
    int64_t chunk = 0;
    int64_t tile_height = 0;
    int64_t lag = 0;
};

struct Plan {
    uint64_t steps_per_pass = 0;
    int64_t chunk = 0;  // fronts
    int64_t tile_height = 0;
    int64_t lag = 1;                // Tiling::order
    int64_t slab = 1;               // positions in a transfer
    int64_t ring_length = 0;        // of what is read from the file
    int64_t other_ring_length = 0;  // of buffers that are not
    size_t window_bytes = 0;
    uint32_t threads = 1;
};

struct PlanInput {
    const Geometry& geometry;
    const std::vector<FieldSpec>& fields;
    const Program& program;
    bool is_in_file = false;
    bool keeps_unused = false;  // states that no stage uses pass through memory, too
    uint64_t steps = 0;
    size_t memory_bytes = 0;
    size_t held_bytes = 0;  // of these, by the grid itself where it lies in memory
    uint32_t threads = 1;
    Speeds speeds = {};
    Wishes wishes = {};
    TapOptions taps = {};
};

// LIMIT: the memory is too small, and how much it takes.
Result<Plan> make_plan(const PlanInput& input);

// TapOptions::parts.
int64_t parts_of(const Geometry& geometry, const Program& program, const Plan& plan);

// Bytes of rings for one position, of those that are read from the file and of the others.
struct RingBytes {
    size_t read = 0;
    size_t other = 0;
    size_t moved_per_pass = 0;  // between file and memory
};
RingBytes ring_bytes(const PlanInput& input);

}  // namespace hanare::stencil
