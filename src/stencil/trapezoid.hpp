// SPDX-License-Identifier: Apache-2.0
//
// The paper's scheme, for comparison (sections 2.2, 3.2 and 4): two buffers for the domain, of
// which a pass reads one and writes the other, and two for a slab of positions with its halo.  Of
// a slab all steps of a pass are computed, for fewer positions with each step; what is in the halo
// is computed again by the neighbours.  Columns and rows are whole.  The first and the last substep
// go by halves, while the other half is read or written (section 4, aio).
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "stencil/plan.hpp"
#include "stencil/program.hpp"
#include "stencil/ring.hpp"
#include "stencil/run_progress.hpp"
#include "stencil/storage.hpp"
#include "stencil/stream.hpp"

namespace hanare::stencil {

// Plan::chunk is the slab without halo, ring_length of both buffers.  LIMIT.
Result<Plan> plan_trapezoid(const PlanInput& input);

struct TrapezoidJob {
    const Geometry& geometry;
    const std::vector<FieldSpec>& fields;
    const Program& program;
    const std::vector<FieldRings>& rings;
    const Plan& plan;
    Storage& storage;
    RunProgress& progress;
    uint64_t first_step = 0;
    uint64_t steps = 0;
    bool is_blocked = false;  // spatial blocks within the slab: the paper's second level
    bool is_pinned = false;
};

// The storage's states are in copy (copy + passes) % 2 afterwards.
Result<void> run_trapezoid(const TrapezoidJob& job, RunResult& result);

}  // namespace hanare::stencil
