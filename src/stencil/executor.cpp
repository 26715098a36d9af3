// SPDX-License-Identifier: Apache-2.0
#include "stencil/executor.hpp"

#include <algorithm>
#include <cstring>

namespace hanare::stencil {

// One plane's part in one substep.
struct Executor::Box {
    const Pass& pass;
    uint32_t substep;
    const Stage& stage;
    size_t stage_number;
    uint64_t step;  // within the pass
    int64_t position;
    int64_t sheet;
    int64_t plane;
    bool is_frame;
    Interval part;
    int64_t part_number;
    // The same with the frame or the halo behind it, where it touches that.
    Interval extended;
    Interval rows;     // that the kernel computes
    Interval columns;  // the same
};

namespace {

// With the frame, but not the halo.
Interval with_frame(const Axis& axis, Interval part) {
    return {part.begin == axis.begin() ? 0 : part.begin,
            part.end == axis.end() ? axis.cells : part.end};
}

Interval with_halo(const Axis& axis, Interval part) {
    return {part.begin == axis.begin() ? -axis.halo : part.begin,
            part.end == axis.end() ? axis.cells + axis.halo : part.end};
}

}  // namespace

Executor::Executor(const Geometry& geometry, const Program& program,
                   const std::vector<FieldRings>& rings)
    : geometry_(geometry), program_(program), rings_(rings) {}

size_t Executor::ring_before(const Box& box, uint32_t field) const {
    if (!program_.is_doubled(field)) return 0;
    return (box.step * program_.writes_per_step(field) +
            program_.writes_before(box.stage_number, field)) %
           2;
}

void Executor::update(const Pass& pass, uint32_t substep, int64_t position, Interval part,
                      Scratch& scratch, int64_t part_number) const {
    const uint32_t stages = program_.stage_count();
    const uint32_t stage_number = substep % stages;
    const Stage& stage = program_.stages()[stage_number];
    const bool is_flat = geometry_.is_flat();
    const Axis& columns = geometry_.columns();
    for (int64_t sheet = 0; sheet < geometry_.sheets_at(position); ++sheet) {
        const int64_t plane = geometry_.plane_of(position, sheet);
        const Interval whole_rows = {columns.begin(), columns.end()};
        const Box box = {pass,
                         substep,
                         stage,
                         stage_number,
                         substep / stages,
                         position,
                         sheet,
                         plane,
                         geometry_.is_frame_plane(plane),
                         part,
                         part_number,
                         with_frame(geometry_.lateral(), part),
                         is_flat ? Interval{0, 1} : part,
                         is_flat ? part : whole_rows};
        if (!box.is_frame) {
            point_in(box, scratch);
            call_kernel(box, scratch);
        }
        const bool is_first = box.step == 0;
        for (const uint32_t field : stage.writes) {
            const bool is_doubled = program_.is_doubled(field);
            const size_t before = ring_before(box, field);
            const size_t target = is_doubled ? 1 - before : 0;
            if (is_first && is_doubled && before == 0 &&
                program_.writes_before(stage_number, field) == 0) {
                copy_frame(box, field, target);
            }
        }
        if (!box.is_frame) add_sources(box);
        for (const uint32_t field : stage.writes) {
            const size_t target = program_.is_doubled(field) ? 1 - ring_before(box, field) : 0;
            const Ring& ring = rings_[field].rings[target];
            if (!box.is_frame) {
                make_column_halos(box, ring);
                make_row_halos(box, ring);
            }
            if (taps_ != nullptr) take_snapshot(box, field, target);
        }
    }
}

void Executor::point_in(const Box& box, Scratch& scratch) const {
    const int64_t corner = geometry_.cell_offset(box.rows.begin, box.columns.begin);
    scratch.in_.clear();
    scratch.out_.clear();
    for (const hanare_stencil_read& read : box.stage.reads) {
        const Ring& ring = rings_[read.field].rings[ring_before(box, read.field)];
        const auto radius = static_cast<int64_t>(read.radius);
        for (int64_t distance = -radius; distance <= radius; ++distance) {
            const PlanePlace place = geometry_.place_of(geometry_.plane_seen(box.plane + distance));
            scratch.in_.push_back(ring.plane(box.pass.base + place.position, place.sheet) + corner);
        }
    }
    for (const uint32_t field : box.stage.writes) {
        const size_t target = program_.is_doubled(field) ? 1 - ring_before(box, field) : 0;
        const Ring& ring = rings_[field].rings[target];
        scratch.out_.push_back(ring.plane(box.pass.base + box.position, box.sheet) + corner);
    }
}

void Executor::call_kernel(const Box& box, const Scratch& scratch) const {
    hanare_stencil_box call = {};
    call.in = scratch.in_.data();
    call.out = scratch.out_.data();
    call.row_stride = geometry_.row_stride();
    call.rows = box.rows.end - box.rows.begin;
    call.columns = box.columns.end - box.columns.begin;
    call.step = static_cast<int64_t>(box.pass.first_step + box.step);
    call.z = geometry_.is_flat() ? 0 : box.plane;
    call.y = geometry_.is_flat() ? box.plane : box.rows.begin;
    call.x = box.columns.begin;
    call.user = box.stage.user;
    if (box.stage.reductions.empty()) {
        box.stage.kernel(&call);
        return;
    }
    // Row by row, in two dimensions part by part, so that sums do not depend on how planes are cut
    // into tiles.
    auto& in = const_cast<Scratch&>(scratch).in_;
    auto& out = const_cast<Scratch&>(scratch).out_;
    const int64_t row_bytes = geometry_.row_stride() * geometry_.element_bytes();
    const int64_t front = box.pass.base + box.position + (*box.pass.heights)[box.substep];
    const int64_t rows = call.rows;
    call.rows = 1;
    for (int64_t row = 0; row < rows; ++row) {
        call.reduction =
            taps_->values(box.pass, box.substep, front, box.sheet,
                          geometry_.is_flat() ? box.part_number : box.rows.begin + row);
        box.stage.kernel(&call);
        ++call.y;
        for (const void*& pointer : in)
            pointer = static_cast<const std::byte*>(pointer) + row_bytes;
        for (void*& pointer : out) pointer = static_cast<std::byte*>(pointer) + row_bytes;
    }
}

void Executor::add_sources(const Box& box) const {
    const std::vector<Source>* const sources = program_.sources(box.stage_number, box.plane);
    if (sources == nullptr) return;
    const uint64_t step = box.pass.first_step + box.step;
    for (const Source& source : *sources) {
        const int64_t cell = geometry_.is_flat() ? source.column : source.row;
        if (cell < box.part.begin || cell >= box.part.end) continue;
        if (step < source.first_step || step - source.first_step >= source.series.size()) continue;
        const double value = source.series[step - source.first_step];
        const size_t target =
            program_.is_doubled(source.field) ? 1 - ring_before(box, source.field) : 0;
        std::byte* const address =
            rings_[source.field].rings[target].plane(box.pass.base + box.position, box.sheet) +
            geometry_.cell_offset(source.row, source.column);
        if (geometry_.element_bytes() == sizeof(double)) {
            *reinterpret_cast<double*>(address) += value;
        } else {
            *reinterpret_cast<float*>(address) += static_cast<float>(value);
        }
    }
}

// The other buffer has no fixed cells yet; rows or cells next to the part's, and both ends of rows.
void Executor::copy_frame(const Box& box, uint32_t field, size_t target) const {
    const FieldRings& rings = rings_[field];
    const int64_t position = box.pass.base + box.position;
    const std::byte* const from = rings.rings[1 - target].plane(position, box.sheet);
    std::byte* const to = rings.rings[target].plane(position, box.sheet);
    const auto copy = [&](int64_t row, int64_t begin, int64_t end) {
        if (begin >= end) return;
        const int64_t offset = geometry_.cell_offset(row, begin);
        std::memcpy(to + offset, from + offset,
                    static_cast<size_t>((end - begin) * geometry_.element_bytes()));
    };
    const Axis& columns = geometry_.columns();
    const Interval all = {-columns.halo, columns.cells + columns.halo};
    if (geometry_.is_flat()) {
        const Interval extended = with_halo(columns, box.extended);
        if (box.is_frame) return copy(0, extended.begin, extended.end);
        copy(0, box.extended.begin, box.part.begin);
        copy(0, box.part.end, box.extended.end);
        return;
    }
    if (box.is_frame) {
        const Interval part = with_halo(geometry_.rows(), box.part);
        const Interval rows = geometry_.rows().frame > 0 ? box.extended : part;
        for (int64_t row = rows.begin; row < rows.end; ++row) copy(row, all.begin, all.end);
        return;
    }
    for (int64_t row = box.extended.begin; row < box.extended.end; ++row) {
        if (row < box.part.begin || row >= box.part.end) {
            copy(row, all.begin, all.end);
        } else if (columns.frame > 0) {
            copy(row, 0, columns.begin());
            copy(row, columns.end(), columns.cells);
        }
    }
}

void Executor::make_column_halos(const Box& box, const Ring& ring) const {
    const Axis& axis = geometry_.columns();
    if (axis.halo == 0) return;
    std::byte* const plane = ring.plane(box.pass.base + box.position, box.sheet);
    const int64_t bytes = geometry_.element_bytes();
    const auto copy = [&](int64_t row, int64_t to, int64_t from) {
        if (from < box.columns.begin || from >= box.columns.end) return;
        std::memcpy(plane + geometry_.cell_offset(row, to),
                    plane + geometry_.cell_offset(row, from), static_cast<size_t>(bytes));
    };
    // In three dimensions rows of the frame have halos, too, which never change.
    for (int64_t row = box.rows.begin; row < box.rows.end; ++row) {
        for (int64_t beyond = 1; beyond <= axis.halo; ++beyond) {
            copy(row, -beyond, axis.image_before(beyond));
            copy(row, axis.cells - 1 + beyond, axis.image_after(beyond));
        }
    }
}

void Executor::make_row_halos(const Box& box, const Ring& ring) const {
    const Axis& axis = geometry_.rows();
    if (axis.halo == 0) return;
    std::byte* const plane = ring.plane(box.pass.base + box.position, box.sheet);
    const int64_t first = -geometry_.columns().halo;
    const auto bytes = static_cast<size_t>(
        (geometry_.columns().cells + 2 * geometry_.columns().halo) * geometry_.element_bytes());
    const auto copy = [&](int64_t to, int64_t from) {
        if (from < box.rows.begin || from >= box.rows.end) return;
        std::memcpy(plane + geometry_.cell_offset(to, first),
                    plane + geometry_.cell_offset(from, first), bytes);
    };
    for (int64_t beyond = 1; beyond <= axis.halo; ++beyond) {
        copy(-beyond, axis.image_before(beyond));
        copy(axis.cells - 1 + beyond, axis.image_after(beyond));
    }
}

void Executor::take_snapshot(const Box& box, uint32_t field, size_t ring) const {
    if (field != taps_->snapshot_field()) return;
    const int64_t front = box.pass.base + box.position + (*box.pass.heights)[box.substep];
    std::byte* const to = taps_->snapshot_plane(box.pass, box.substep, front, box.sheet);
    if (to == nullptr) return;
    const std::byte* const from =
        rings_[field].rings[ring].plane(box.pass.base + box.position, box.sheet);
    const bool is_flat = geometry_.is_flat();
    const Interval rows = is_flat ? Interval{0, 1} : box.extended;
    const Interval columns = is_flat ? box.extended : Interval{0, geometry_.columns().cells};
    const int64_t bytes = geometry_.element_bytes();
    for (int64_t row = rows.begin; row < rows.end; ++row) {
        std::memcpy(to + (row * geometry_.columns().cells + columns.begin) * bytes,
                    from + geometry_.cell_offset(row, columns.begin),
                    static_cast<size_t>((columns.end - columns.begin) * bytes));
    }
}

}  // namespace hanare::stencil
