// SPDX-License-Identifier: Apache-2.0
//
// What a run is asked to do besides computing.
#pragma once

#include <cstdint>

#include "stencil/plan.hpp"
#include "stencil/snapshots.hpp"

namespace hanare::stencil {

struct RunOptions {
    uint32_t threads = 1;
    bool is_pinned = false;
    bool measures = true;
    Wishes wishes;
    SnapshotOptions snapshots;
    hanare_grid_progress_function progress = nullptr;
    void* progress_user = nullptr;
    double* reductions = nullptr;
};

}  // namespace hanare::stencil
