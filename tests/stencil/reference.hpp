// SPDX-License-Identifier: Apache-2.0
//
// A plain computation of stencils: whole arrays, one stage after the other, cell by cell, with the
// boundaries looked up for each cell.  Shares nothing with the library but the description of what
// is computed, which a kernel (for the library) and this interpret in the same order of operations.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "hanare/stencil.h"

namespace hanare::stencil_test {

// A term: coefficient times a neighbour of the cell.
struct Tap {
    uint32_t field = 0;
    int dz = 0, dy = 0, dx = 0;
    double coefficient = 0;
};

// A field that a stage writes: the sum of its taps, then what the field was before times `memory`
// (of kind TWO_LEVELS: one level earlier), and a small number that depends on cell and step.
struct Written {
    uint32_t field = 0;
    std::vector<Tap> taps;
    double memory = 0;
};

struct StageModel {
    std::vector<hanare_stencil_read> reads;
    std::vector<Written> written;
    std::vector<hanare_reduction> reductions;  // of the first field written
    bool is_float = false;
    bool is_flat = false;
    // For the kernel: which entry of `in` is a field's plane of the box.
    std::vector<int> own_pointer;
};

struct SourceModel {
    uint32_t stage = 0, field = 0;
    std::array<uint64_t, 3> position = {};
    uint64_t first_step = 0;
    std::vector<double> series;
};

struct Model {
    uint32_t dimensions = 3;
    bool is_float = false;
    uint32_t radius = 1;
    std::array<uint64_t, 3> shape = {};
    std::array<hanare_boundary, 3> boundary = {};
    std::vector<hanare_field_kind> kinds;
    std::vector<StageModel> stages;
    std::vector<SourceModel> sources;

    uint64_t cells() const;
    // What the paper's scheme can do, too.
    bool is_simple() const;
    std::string describe() const;
};

// The kernel for the library: `user` is a StageModel.
void model_kernel(const hanare_stencil_box* box);

class Reference {
public:
    explicit Reference(const Model& model);

    // Level 0, and 1 for what a field was before the last write.
    std::vector<double>& values(uint32_t field, uint32_t level) { return values_[field][level]; }
    void step();
    uint64_t steps() const { return step_; }
    // Of the last step, in the order of the stages.
    const std::vector<double>& reductions() const { return reductions_; }

private:
    // z, y, x; in two dimensions z is 0 and has one cell.
    struct Cell {
        int64_t z, y, x;
    };
    int64_t cells_along(int axis) const { return extent_[static_cast<size_t>(axis)]; }
    size_t index(Cell cell) const;
    int64_t seen(int axis, int64_t at) const;
    bool is_fixed(Cell cell) const;
    void stage(const StageModel& stage, size_t number);
    double value_of(const Written& written, Cell cell) const;
    double round(double value) const;

    const Model& model_;
    std::array<int64_t, 3> extent_ = {};
    std::array<hanare_boundary, 3> boundary_ = {};
    std::vector<std::array<std::vector<double>, 2>> values_;
    std::vector<double> reductions_;
    uint64_t step_ = 0;
};

}  // namespace hanare::stencil_test
