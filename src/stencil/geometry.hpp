// SPDX-License-Identifier: Apache-2.0
//
// Where cells are: a grid as a sequence of positions that is streamed, each of one plane (or of the
// two planes q and n-1-q where the slowest axis is periodic, so that neighbours in the ring are
// neighbours in the sequence, too), with rows padded for alignment and halos for what boundaries
// show beyond the edge.  The layout is the same in memory and in files.
// Immutable after construction; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/result.hpp"
#include "hanare/stencil.h"

namespace hanare::stencil {

inline constexpr uint32_t kRadiusMax = 4;

// What a grid's owner has said of it.
struct GridShape {
    uint32_t dimensions = 3;
    uint32_t element_bytes = sizeof(double);
    uint32_t radius = 1;
    std::array<uint64_t, 3> cells = {};  // slowest first
    std::array<hanare_boundary, 3> boundary = {};
};

// Of one axis within a plane.
struct Axis {
    int64_t cells = 1;
    hanare_boundary boundary = HANARE_BOUNDARY_FIXED;
    int64_t frame = 0;  // cells at both ends that are never updated
    int64_t halo = 0;   // images beyond both ends

    int64_t begin() const { return frame; }
    int64_t end() const { return cells - frame; }
    // The cell whose image is shown `beyond` the end (1: next to it).
    int64_t image_before(int64_t beyond) const {
        return boundary == HANARE_BOUNDARY_PERIODIC ? cells - beyond : beyond - 1;
    }
    int64_t image_after(int64_t beyond) const {
        return boundary == HANARE_BOUNDARY_PERIODIC ? beyond - 1 : cells - beyond;
    }
};

// A plane's place in the sequence.
struct PlanePlace {
    int64_t position = 0;
    int64_t sheet = 0;
};

class Geometry {
public:
    // INVALID_ARGUMENT: it names what is wrong with the shape.
    static Result<Geometry> make(const GridShape& shape);

    const GridShape& shape() const { return shape_; }
    bool is_flat() const { return shape_.dimensions == 2; }
    int64_t planes() const { return planes_; }
    const Axis& rows() const { return rows_; }
    const Axis& columns() const { return columns_; }
    // The axis that tiles divide: rows, in two dimensions columns.
    const Axis& lateral() const { return is_flat() ? columns_ : rows_; }
    int64_t element_bytes() const { return static_cast<int64_t>(shape_.element_bytes); }
    int64_t radius() const { return static_cast<int64_t>(shape_.radius); }

    int64_t positions() const { return positions_; }
    int64_t sheets() const { return is_folded_ ? 2 : 1; }
    // The middle position of an odd number of folded planes has one.
    int64_t sheets_at(int64_t position) const {
        return is_folded_ && position != planes_ - 1 - position ? 2 : 1;
    }
    int64_t plane_of(int64_t position, int64_t sheet) const {
        return sheet == 0 ? position : planes_ - 1 - position;
    }
    PlanePlace place_of(int64_t plane) const {
        if (is_folded_ && plane >= positions_) return {planes_ - 1 - plane, 1};
        return {plane, 0};
    }
    // The plane that is seen at number `plane`, which may be up to `radius` beyond the ends.
    int64_t plane_seen(int64_t plane) const {
        if (plane >= 0 && plane < planes_) return plane;
        if (is_folded_) return plane < 0 ? plane + planes_ : plane - planes_;
        return plane < 0 ? -1 - plane : 2 * planes_ - 1 - plane;
    }
    bool is_frame_plane(int64_t plane) const {
        return plane < plane_frame_ || plane >= planes_ - plane_frame_;
    }

    int64_t row_stride() const { return row_stride_; }  // elements
    size_t sheet_bytes() const { return sheet_bytes_; }
    size_t position_bytes() const { return sheet_bytes_ * static_cast<size_t>(sheets()); }
    // So many positions are a multiple of 4 KiB.
    int64_t group() const { return group_; }
    // Positions, rounded up to whole groups.
    int64_t stored_positions() const { return (positions_ + group_ - 1) / group_ * group_; }
    size_t stored_bytes() const {
        return static_cast<size_t>(stored_positions()) * position_bytes();
    }
    // Bytes from the begin of a sheet to a cell, which may be in a halo.
    int64_t cell_offset(int64_t row, int64_t column) const {
        return ((row + rows_.halo) * row_stride_ + left_ + column) * element_bytes();
    }
    uint64_t cell_count() const {
        return shape_.cells[0] * shape_.cells[1] * (is_flat() ? 1 : shape_.cells[2]);
    }
    uint64_t updated_planes() const { return static_cast<uint64_t>(planes_ - 2 * plane_frame_); }
    // Cells of a plane that are updated.
    uint64_t updated_cells() const {
        return static_cast<uint64_t>((rows_.end() - rows_.begin()) *
                                     (columns_.end() - columns_.begin()));
    }
    size_t packed_plane_bytes() const {
        return static_cast<size_t>(rows_.cells * columns_.cells * element_bytes());
    }

private:
    Geometry() = default;

    void lay_out();

    GridShape shape_;
    Axis rows_;
    Axis columns_;
    int64_t planes_ = 0;
    int64_t plane_frame_ = 0;
    bool is_folded_ = false;
    int64_t positions_ = 0;
    int64_t row_stride_ = 0;
    int64_t left_ = 0;  // elements before the first cell of a row
    size_t sheet_bytes_ = 0;
    int64_t group_ = 1;
};

}  // namespace hanare::stencil
