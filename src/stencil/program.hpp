// SPDX-License-Identifier: Apache-2.0
//
// A stencil as the engine sees it.  A step is a sequence of stages; all stages of all steps of a
// pass are its substeps 1, 2, ...  Each has a height tau: substep s of position v is computed at
// front w = v + tau(s), and whatever it depends on, or must not overwrite, is at a distance of at
// most the difference of heights, in positions and laterally.  (research note, section 2)
// Immutable after construction; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "hanare/stencil.h"
#include "stencil/geometry.hpp"

namespace hanare::stencil {

struct FieldSpec {
    std::string name;
    hanare_field_kind kind = HANARE_FIELD_STATE;
};

struct Stage {
    hanare_stencil_kernel kernel = nullptr;
    void* user = nullptr;
    std::vector<hanare_stencil_read> reads;
    std::vector<uint32_t> writes;
    std::vector<hanare_reduction> reductions;
    size_t first_reduction = 0;  // among those of a step
    int64_t radius = 0;
    size_t pointers = 0;  // of `in`
};

struct Source {
    uint32_t field = 0;
    int64_t plane = 0;
    int64_t row = 0;
    int64_t column = 0;
    uint64_t first_step = 0;
    std::vector<double> series;
};

class Program {
public:
    static Result<Program> make(const hanare_stencil& given, const Geometry& geometry,
                                const std::vector<FieldSpec>& fields);

    const std::vector<Stage>& stages() const { return stages_; }
    uint32_t stage_count() const { return static_cast<uint32_t>(stages_.size()); }
    size_t reduction_count() const { return reduction_count_; }
    int64_t radius() const { return radius_; }
    // tau(1) to tau(steps times stages), in this order.
    std::vector<int64_t> heights(uint64_t steps) const;
    int64_t step_height() const { return step_height_; }
    int64_t slope_max() const;

    // Whether a write goes to another buffer than what was before; if not, it is in place.
    bool is_doubled(uint32_t field) const { return doubled_[field] != 0; }
    bool is_used(uint32_t field) const { return used_[field] != 0; }
    uint64_t writes_per_step(uint32_t field) const { return writes_per_step_[field]; }
    // Writes to the field by the stages of a step before `stage`.
    uint64_t writes_before(size_t stage, uint32_t field) const {
        return writes_before_[stage * used_.size() + field];
    }
    // Sources in a plane after a stage, NULL where there are none.
    const std::vector<Source>* sources(size_t stage, int64_t plane) const;

private:
    Program() = default;

    Result<void> add_stage(const hanare_stencil_stage& given, size_t number,
                           const Geometry& geometry, const std::vector<FieldSpec>& fields);
    Result<void> add_source(const hanare_stencil_source& given, size_t number,
                            const Geometry& geometry);
    void derive(const std::vector<FieldSpec>& fields);

    std::vector<Stage> stages_;
    std::vector<int64_t> slopes_;   // of each stage above the one before
    std::vector<uint8_t> doubled_;  // bytes, since they are looked up for each part
    std::vector<uint8_t> used_;
    std::vector<uint64_t> writes_per_step_;
    std::vector<uint64_t> writes_before_;
    size_t reduction_count_ = 0;
    int64_t radius_ = 0;
    int64_t step_height_ = 0;
    // By stage, then sorted by plane.
    std::vector<std::vector<std::pair<int64_t, std::vector<Source>>>> sources_;
};

}  // namespace hanare::stencil
