// SPDX-License-Identifier: Apache-2.0
#include "stencil/tiles.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/assert.hpp"

namespace hanare::stencil {

namespace {

bool grows_from_cut(int64_t row) { return row % 2 == 0; }

}  // namespace

Tiling::Tiling(const Axis& axis, int64_t height, int64_t slope_max) : axis_(axis) {
    const int64_t cells = axis.end() - axis.begin();
    // A substep's dependences reach the next tile, not the one behind it.
    height_ = std::min(std::max(height, slope_max), cells / 2);
    if (height_ < slope_max) {
        height_ = 0;
        return;
    }
    const int64_t gaps = cells / (2 * height_);
    for (int64_t i = 0; i <= gaps; ++i) cuts_.push_back(axis.begin() + cells * i / gaps);
}

int64_t Tiling::width() const {
    return is_undivided() ? axis_.end() - axis_.begin() : cuts_[1] - cuts_[0];
}

int64_t Tiling::count_in_row(int64_t row) const {
    const auto gaps = static_cast<int64_t>(cuts_.size()) - 1;
    return grows_from_cut(row) && axis_.boundary != HANARE_BOUNDARY_PERIODIC ? gaps + 1 : gaps;
}

int64_t Tiling::centre(int64_t row, int64_t number) const {
    const auto i = static_cast<size_t>(number);
    return grows_from_cut(row) ? cuts_[i] : (cuts_[i] + cuts_[i + 1]) / 2;
}

std::array<Interval, 2> Tiling::parts(const Tile& tile, int64_t height) const {
    if (is_undivided()) return {Interval{axis_.begin(), axis_.end()}, Interval{}};
    const int64_t grown = height - tile.row * height_;
    HANARE_ASSERT(grown >= 0 && grown < 2 * height_);
    const int64_t half = grown < height_ ? grown : 2 * height_ - grown;
    const auto i = static_cast<size_t>(tile.number);
    const bool is_cut = grows_from_cut(tile.row);
    Interval all = {is_cut ? cuts_[i] - half : cuts_[i] + height_ - half,
                    is_cut ? cuts_[i] + half : cuts_[i + 1] - height_ + half};
    if (axis_.boundary == HANARE_BOUNDARY_PERIODIC && all.begin < 0) {
        return {Interval{0, all.end}, Interval{axis_.cells + all.begin, axis_.cells}};
    }
    return {Interval{std::max(all.begin, axis_.begin()), std::min(all.end, axis_.end())},
            Interval{}};
}

std::vector<Tile> Tiling::order(const std::vector<int64_t>& heights, int64_t lag) const {
    const auto substeps = static_cast<uint32_t>(heights.size());
    if (is_undivided()) return {Tile{0, 0, 0, substeps, 0, 0}};
    struct Placed {
        Tile tile;
        int64_t key = 0;
    };
    std::vector<Placed> placed;
    const auto first_at = [&](int64_t height) {
        return static_cast<uint32_t>(std::ranges::lower_bound(heights, height) - heights.begin());
    };
    for (int64_t row = -1; row * height_ <= heights.back(); ++row) {
        Tile tile;
        tile.row = static_cast<int32_t>(row);
        tile.substeps_begin = first_at(row * height_);
        tile.substeps_end = first_at((row + 2) * height_);
        for (int64_t number = 0; number < count_in_row(row); ++number) {
            tile.number = static_cast<int32_t>(number);
            placed.push_back({tile, centre(row, number) + row * (2 * lag + 1) * height_});
        }
    }
    const auto by_front = [](const Placed& a, const Placed& b) {
        return std::tie(a.key, a.tile.row, a.tile.number) <
               std::tie(b.key, b.tile.row, b.tile.number);
    };
    // Widths differ, and at a periodic end the left neighbour is the last one: the key alone is
    // not enough.  Rows are in order where the key is.
    std::ranges::sort(placed, by_front);
    std::map<std::pair<int32_t, int32_t>, uint32_t> index;
    std::vector<Tile> order;
    const auto neighbours = [&](const Tile& tile) {
        const int64_t below = count_in_row(tile.row - 1);
        int64_t left = grows_from_cut(tile.row) ? tile.number - 1 : tile.number;
        int64_t right = left + 1;
        if (axis_.boundary == HANARE_BOUNDARY_PERIODIC) {
            left = (left + below) % below;
            right = right % below;
        }
        return std::pair{std::max<int64_t>(left, 0), std::min(right, below - 1)};
    };
    std::vector<Placed> waiting = std::move(placed);
    while (!waiting.empty()) {
        std::vector<Placed> later;
        for (Placed& next : waiting) {
            Tile& tile = next.tile;
            const auto own = static_cast<uint32_t>(order.size());
            tile.left = tile.right = own;
            if (tile.row > -1) {
                const auto [left, right] = neighbours(tile);
                const auto a = index.find({tile.row - 1, static_cast<int32_t>(left)});
                const auto b = index.find({tile.row - 1, static_cast<int32_t>(right)});
                if (a == index.end() || b == index.end()) {
                    later.push_back(next);
                    continue;
                }
                tile.left = a->second;
                tile.right = b->second;
            }
            index[{tile.row, tile.number}] = own;
            order.push_back(tile);
        }
        waiting = std::move(later);
    }
    return order;
}

}  // namespace hanare::stencil
