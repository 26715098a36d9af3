// SPDX-License-Identifier: Apache-2.0
//
// How a pass is cut into tiles: diamonds in (lateral, height), whose edges move by one cell for one
// of height.  Where the cells are no multiple of a diamond's width the widths differ, and some
// diamonds have flat tops.  A tile depends on the two below it; with fronts w in a third direction
// any order that respects that is right (research note, section 2; MWD: Malas et al., 2015).
//
// Row r holds what begins to grow at height r H and has shrunk again at (r + 2) H.  In even rows
// tiles grow from cuts, in odd rows from the gaps between.  Row -1 is there from the start and only
// shrinks.  Immutable after construction; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "stencil/geometry.hpp"

namespace hanare::stencil {

struct Interval {
    int64_t begin = 0;
    int64_t end = 0;
    bool is_empty() const { return begin >= end; }
};

struct Tile {
    int32_t row = 0;
    int32_t number = 0;  // in its row
    // Substeps whose heights are the row's: [begin, end), the first one of a pass is 0.
    uint32_t substeps_begin = 0;
    uint32_t substeps_end = 0;
    // Those that it depends on, as indices in TileOrder::tiles; itself: none.
    uint32_t left = 0;
    uint32_t right = 0;
};

class Tiling {
public:
    // Tiles of half height and half width `height`; less if there are too few cells.
    Tiling(const Axis& axis, int64_t height, int64_t slope_max);

    // One tile takes all cells at all heights.
    bool is_undivided() const { return cuts_.empty(); }
    int64_t height() const { return height_; }
    int64_t width() const;

    // What a tile has at a height within its row: the second part where it wraps around.
    std::array<Interval, 2> parts(const Tile& tile, int64_t height) const;
    // Numbers of these, from left to right, that no other part has at the same height.
    int64_t part_number(const Tile& tile, size_t which) const {
        if (which != 0) return parts_max() - 1;
        return 2 * tile.number + (tile.row % 2 == 0 ? 0 : 1);
    }
    int64_t parts_max() const {
        return is_undivided() ? 1 : 2 * static_cast<int64_t>(cuts_.size()) - 1;
    }
    // Tiles in an order in which each comes after those that it depends on.  `lag`: how many tiles
    // a row is behind the one below; the larger, the more tiles can be computed at the same time,
    // and the longer ago what they need was used.
    std::vector<Tile> order(const std::vector<int64_t>& heights, int64_t lag) const;

private:
    int64_t count_in_row(int64_t row) const;
    int64_t centre(int64_t row, int64_t number) const;

    Axis axis_;
    int64_t height_ = 0;
    std::vector<int64_t> cuts_;  // gaps + 1 of them; where periodic, the last is the first again
};

}  // namespace hanare::stencil
