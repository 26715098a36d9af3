// SPDX-License-Identifier: Apache-2.0
#include "stencil/geometry.hpp"

#include <numeric>

#include "base/units.hpp"

namespace hanare::stencil {

namespace {

constexpr size_t kLineBytes = 64;
// Planes from this size on are whole pages, each of them a transfer of its own if need be.
constexpr size_t kPagedPlaneBytes = 64 * kKiB;
constexpr size_t kSmallPlaneUnit = 512;
constexpr uint64_t kCellsMax = uint64_t{1} << 48;
// Beyond it offsets in files would not fit: both copies of both levels of 64 fields.  Short rows
// and planes are mostly padding.
constexpr uint64_t kStoredBytesMax = uint64_t{1} << 55;

constexpr const char* kAxisNames[] = {"z", "y", "x"};

// An odd multiple: rows or planes with the same number then do not meet in the same cache sets.
size_t odd_multiple(size_t bytes, size_t unit) {
    const size_t units = (bytes + unit - 1) / unit;
    return (units | 1) * unit;
}

Result<void> check_axis(const GridShape& shape, uint32_t axis) {
    const char* const name = kAxisNames[axis + (3 - shape.dimensions)];
    const hanare_boundary boundary = shape.boundary[axis];
    if (boundary != HANARE_BOUNDARY_FIXED && boundary != HANARE_BOUNDARY_REFLECT &&
        boundary != HANARE_BOUNDARY_PERIODIC) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "boundary %d along %s is none",
                    static_cast<int>(boundary), name);
    }
    const bool is_fixed = boundary == HANARE_BOUNDARY_FIXED;
    const uint64_t cells_min = is_fixed ? 2 * shape.radius + 1 : shape.radius;
    if (shape.cells[axis] >= cells_min && shape.cells[axis] <= kCellsMax) return {};
    return fail(HANARE_STATUS_INVALID_ARGUMENT,
                "shape: %llu cells along %s; with radius %u and this boundary %llu at least",
                static_cast<unsigned long long>(shape.cells[axis]), name, shape.radius,
                static_cast<unsigned long long>(cells_min));
}

Axis axis_of(const GridShape& shape, uint32_t axis) {
    Axis result;
    result.cells = static_cast<int64_t>(shape.cells[axis]);
    result.boundary = shape.boundary[axis];
    const auto radius = static_cast<int64_t>(shape.radius);
    if (result.boundary == HANARE_BOUNDARY_FIXED) {
        result.frame = radius;
    } else {
        result.halo = radius;
    }
    return result;
}

}  // namespace

Result<Geometry> Geometry::make(const GridShape& shape) {
    if (shape.dimensions != 2 && shape.dimensions != 3) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "dimensions: %u; allowed are 2 and 3",
                    shape.dimensions);
    }
    if (shape.radius < 1 || shape.radius > kRadiusMax) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "radius: %u; allowed are 1 to %u", shape.radius,
                    kRadiusMax);
    }
    uint64_t cells = 1;
    for (uint32_t axis = 0; axis < shape.dimensions; ++axis) {
        HANARE_TRY(check_axis(shape, axis));
        if (shape.cells[axis] > kCellsMax / cells) {
            return fail(HANARE_STATUS_INVALID_ARGUMENT, "shape: more than 2^48 cells");
        }
        cells *= shape.cells[axis];
    }
    Geometry made;
    made.shape_ = shape;
    made.lay_out();
    if (made.stored_bytes() > kStoredBytesMax) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "shape: with its padding more than 2^55 bytes");
    }
    return made;
}

void Geometry::lay_out() {
    planes_ = static_cast<int64_t>(shape_.cells[0]);
    const hanare_boundary along_planes = shape_.boundary[0];
    plane_frame_ = along_planes == HANARE_BOUNDARY_FIXED ? radius() : 0;
    is_folded_ = along_planes == HANARE_BOUNDARY_PERIODIC;
    positions_ = is_folded_ ? (planes_ + 1) / 2 : planes_;
    if (!is_flat()) rows_ = axis_of(shape_, 1);
    columns_ = axis_of(shape_, shape_.dimensions - 1);

    // The first cell that is updated begins a cache line, and so does each row.
    const auto line = static_cast<int64_t>(kLineBytes) / element_bytes();
    left_ = columns_.frame > 0 ? line - columns_.frame : line;
    const int64_t needed = left_ + columns_.cells + columns_.halo;
    row_stride_ = (needed + line - 1) / line * line;
    // Rows at a distance of whole pages would all be in the same sets of the first-level cache.
    if (!is_flat() && row_stride_ * element_bytes() % 2048 == 0) row_stride_ += line;

    const auto bytes =
        static_cast<size_t>((rows_.cells + 2 * rows_.halo) * row_stride_ * element_bytes());
    const bool is_paged = bytes >= kPagedPlaneBytes;
    sheet_bytes_ = odd_multiple(bytes, is_paged ? kOsPageBytes : kSmallPlaneUnit);
    group_ = static_cast<int64_t>(kOsPageBytes / std::gcd(position_bytes(), kOsPageBytes));
}

}  // namespace hanare::stencil
