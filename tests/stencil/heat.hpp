// SPDX-License-Identifier: Apache-2.0
//
// One model that most tests use: a field, seven points, fixed and other boundaries.
#pragma once

#include <array>
#include <cstdint>

#include "stencil/scratch_grid.hpp"

namespace hanare::stencil_test {

inline Model heat(std::array<uint64_t, 3> shape) {
    Model model;
    model.shape = shape;
    model.boundary = {HANARE_BOUNDARY_FIXED, HANARE_BOUNDARY_PERIODIC, HANARE_BOUNDARY_REFLECT};
    model.kinds = {HANARE_FIELD_STATE};
    StageModel stage;
    stage.reads = {{0, 1}};
    stage.own_pointer = {1};
    Written written;
    written.taps = {{0, 0, 0, 0, 0.4}, {0, -1, 0, 0, 0.1}, {0, 1, 0, 0, 0.1}, {0, 0, -1, 0, 0.1},
                    {0, 0, 1, 0, 0.1}, {0, 0, 0, -1, 0.1}, {0, 0, 0, 1, 0.1}};
    stage.written = {written};
    model.stages = {stage};
    return model;
}

inline hanare_grid_run_options run_options() {
    hanare_grid_run_options options = {};
    options.struct_size = sizeof options;
    options.flags = HANARE_RUN_NO_MEASUREMENT;
    return options;
}

inline uint64_t step_of(hanare_grid* grid) {
    hanare_grid_info info = {};
    info.struct_size = sizeof info;
    hanare_grid_describe(grid, &info);
    return info.step;
}

inline hanare_grid_statistics statistics_of(hanare_grid* grid) {
    hanare_grid_statistics statistics = {};
    statistics.struct_size = sizeof statistics;
    hanare_grid_statistics_of(grid, &statistics);
    return statistics;
}

}  // namespace hanare::stencil_test
