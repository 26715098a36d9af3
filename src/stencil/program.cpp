// SPDX-License-Identifier: Apache-2.0
#include "stencil/program.hpp"

#include <algorithm>

namespace hanare::stencil {

namespace {

constexpr uint32_t kStagesMax = 16;
constexpr uint32_t kUsesMax = 64;
constexpr uint32_t kReductionsMax = 8;
constexpr uint32_t kSourcesMax = 1u << 20;

std::unexpected<Error> refused(size_t stage, const char* what) {
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "stage %zu: %s", stage, what);
}

Result<void> check_reads(const hanare_stencil_stage& given, size_t number, const Geometry& geometry,
                         size_t field_count) {
    std::vector<bool> seen(field_count);
    for (uint32_t i = 0; i < given.read_count; ++i) {
        const hanare_stencil_read& read = given.reads[i];
        if (read.field >= field_count) return refused(number, "reads a field that does not exist");
        if (seen[read.field]) return refused(number, "reads a field twice");
        seen[read.field] = true;
        if (read.radius > geometry.shape().radius) {
            return fail(HANARE_STATUS_INVALID_ARGUMENT,
                        "stage %zu: reads field %u with radius %u; the grid was made for %u",
                        number, read.field, read.radius, geometry.shape().radius);
        }
    }
    return {};
}

Result<void> check_writes(const hanare_stencil_stage& given, size_t number,
                          const std::vector<FieldSpec>& fields) {
    std::vector<bool> seen(fields.size());
    for (uint32_t i = 0; i < given.write_count; ++i) {
        const uint32_t field = given.writes[i];
        if (field >= fields.size()) return refused(number, "writes a field that does not exist");
        if (fields[field].kind == HANARE_FIELD_CONSTANT) {
            return refused(number, "writes a field that is constant");
        }
        if (seen[field]) return refused(number, "writes a field twice");
        seen[field] = true;
    }
    return {};
}

}  // namespace

Result<Program> Program::make(const hanare_stencil& given, const Geometry& geometry,
                              const std::vector<FieldSpec>& fields) {
    if (given.stage_count < 1 || given.stage_count > kStagesMax || given.stages == nullptr) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "stencil: %u stages; allowed are 1 to %u",
                    given.stage_count, kStagesMax);
    }
    if (given.source_count > kSourcesMax || (given.source_count > 0 && given.sources == nullptr)) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "stencil: %u sources", given.source_count);
    }
    Program made;
    for (uint32_t i = 0; i < given.stage_count; ++i) {
        HANARE_TRY(made.add_stage(given.stages[i], i, geometry, fields));
    }
    made.derive(fields);
    made.sources_.resize(made.stages_.size());
    for (uint32_t i = 0; i < given.source_count; ++i) {
        HANARE_TRY(made.add_source(given.sources[i], i, geometry));
    }
    return made;
}

Result<void> Program::add_stage(const hanare_stencil_stage& given, size_t number,
                                const Geometry& geometry, const std::vector<FieldSpec>& fields) {
    if (given.kernel == nullptr) return refused(number, "kernel is NULL");
    if (given.read_count > kUsesMax || (given.read_count > 0 && given.reads == nullptr)) {
        return refused(number, "reads are NULL, or more than 64");
    }
    if (given.write_count > kUsesMax || given.write_count == 0 || given.writes == nullptr) {
        return refused(number, "writes are none, NULL, or more than 64");
    }
    if (given.reduction_count > kReductionsMax ||
        (given.reduction_count > 0 && given.reductions == nullptr)) {
        return refused(number, "reductions are NULL, or more than 8");
    }
    HANARE_TRY(check_reads(given, number, geometry, fields.size()));
    HANARE_TRY(check_writes(given, number, fields));
    Stage stage;
    stage.kernel = given.kernel;
    stage.user = given.user;
    stage.reads.assign(given.reads, given.reads + given.read_count);
    stage.writes.assign(given.writes, given.writes + given.write_count);
    for (uint32_t i = 0; i < given.reduction_count; ++i) {
        const hanare_reduction reduction = given.reductions[i];
        if (reduction != HANARE_REDUCTION_SUM && reduction != HANARE_REDUCTION_MAX &&
            reduction != HANARE_REDUCTION_MIN) {
            return refused(number, "a reduction that is none");
        }
        stage.reductions.push_back(reduction);
    }
    for (const hanare_stencil_read& read : stage.reads) {
        stage.radius = std::max(stage.radius, static_cast<int64_t>(read.radius));
        stage.pointers += 2 * size_t{read.radius} + 1;
    }
    stage.first_reduction = reduction_count_;
    reduction_count_ += stage.reductions.size();
    radius_ = std::max(radius_, stage.radius);
    stages_.push_back(std::move(stage));
    return {};
}

void Program::derive(const std::vector<FieldSpec>& fields) {
    // A stage depends on what is within its own radius, and must not overwrite what the stage
    // before still reads within its.
    for (size_t i = 0; i < stages_.size(); ++i) {
        const size_t before = (i + stages_.size() - 1) % stages_.size();
        slopes_.push_back(std::max(stages_[i].radius, stages_[before].radius));
    }
    slopes_[0] = std::max<int64_t>(slopes_[0], 1);  // fronts go on, whatever the stencil
    for (const int64_t slope : slopes_) step_height_ += slope;

    doubled_.resize(fields.size());
    used_.resize(fields.size());
    writes_per_step_.resize(fields.size());
    for (uint32_t field = 0; field < fields.size(); ++field) {
        if (fields[field].kind == HANARE_FIELD_TWO_LEVELS) doubled_[field] = 1;
    }
    for (const Stage& stage : stages_) {
        writes_before_.insert(writes_before_.end(), writes_per_step_.begin(),
                              writes_per_step_.end());
        for (const uint32_t field : stage.writes) {
            used_[field] = 1;
            ++writes_per_step_[field];
        }
        for (const hanare_stencil_read& read : stage.reads) {
            used_[read.field] = 1;
            if (read.radius > 0 && std::ranges::count(stage.writes, read.field) > 0) {
                doubled_[read.field] = 1;
            }
        }
    }
}

Result<void> Program::add_source(const hanare_stencil_source& given, size_t number,
                                 const Geometry& geometry) {
    if (given.stage >= stages_.size() ||
        std::ranges::count(stages_[given.stage].writes, given.field) == 0) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "source %zu: stage %u does not exist or does not write field %u", number,
                    given.stage, given.field);
    }
    if (given.series_count > 0 && given.series == nullptr) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "source %zu: series is NULL", number);
    }
    Source source;
    source.field = given.field;
    source.first_step = given.first_step;
    const bool is_flat = geometry.is_flat();
    const auto at = [&](uint32_t axis) { return static_cast<int64_t>(given.position[axis]); };
    source.plane = at(0);
    source.row = is_flat ? 0 : at(1);
    source.column = at(is_flat ? 1 : 2);
    const auto is_updated = [](const Axis& axis, int64_t cell) {
        return cell >= axis.begin() && cell < axis.end();
    };
    if (source.plane < 0 || source.plane >= geometry.planes() ||
        geometry.is_frame_plane(source.plane) || !is_updated(geometry.rows(), source.row) ||
        !is_updated(geometry.columns(), source.column)) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "source %zu: not at a cell that is updated",
                    number);
    }
    source.series.assign(given.series, given.series + given.series_count);
    auto& of_stage = sources_[given.stage];
    const auto place = std::ranges::lower_bound(of_stage, source.plane, {},
                                                [](const auto& entry) { return entry.first; });
    if (place != of_stage.end() && place->first == source.plane) {
        place->second.push_back(std::move(source));
    } else {
        const int64_t plane = source.plane;
        of_stage.insert(place, {plane, {std::move(source)}});
    }
    return {};
}

const std::vector<Source>* Program::sources(size_t stage, int64_t plane) const {
    const auto& of_stage = sources_[stage];
    if (of_stage.empty()) return nullptr;
    const auto place = std::ranges::lower_bound(of_stage, plane, {},
                                                [](const auto& entry) { return entry.first; });
    return place != of_stage.end() && place->first == plane ? &place->second : nullptr;
}

std::vector<int64_t> Program::heights(uint64_t steps) const {
    std::vector<int64_t> heights;
    heights.reserve(steps * stages_.size());
    int64_t height = 0;
    for (uint64_t step = 0; step < steps; ++step) {
        for (const int64_t slope : slopes_) heights.push_back(height += slope);
    }
    return heights;
}

int64_t Program::slope_max() const { return *std::ranges::max_element(slopes_); }

}  // namespace hanare::stencil
