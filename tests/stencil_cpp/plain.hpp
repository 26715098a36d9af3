// SPDX-License-Identifier: Apache-2.0
//
// Fields in plain memory with what lies beyond their boundaries, and a step as plain loops: what
// grids are compared with.  Indices may be beyond the field.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "hanare/stencil.hpp"

template <typename T, unsigned D>
class Plain {
public:
    using Index = std::array<std::int64_t, D>;

    Plain(const std::array<std::uint64_t, D>& shape,
          const std::array<hanare::Boundary, D>& boundary)
        : boundary_(boundary) {
        std::size_t count = 1;
        for (unsigned axis = 0; axis < D; ++axis) {
            shape_[axis] = static_cast<std::int64_t>(shape[axis]);
            count *= shape[axis];
        }
        cells_.resize(count);
    }

    void randomize(std::uint64_t seed) {
        std::mt19937_64 random(seed);
        std::uniform_real_distribution<double> values(0.1, 1);
        for (T& cell : cells_) cell = static_cast<T>(values(random));
    }

    std::vector<T>& cells() { return cells_; }
    const std::vector<T>& cells() const { return cells_; }

    T& operator[](const Index& index) {
        std::int64_t at = 0;
        for (unsigned axis = 0; axis < D; ++axis) {
            at = at * shape_[axis] + wrapped(index[axis], axis);
        }
        return cells_[static_cast<std::size_t>(at)];
    }

    /* Calls function(index) for each cell that is updated. */
    template <typename Function>
    void for_updated(std::int64_t radius, Function&& function) const {
        Index index{};
        visit(0, index, radius, function);
    }

private:
    std::int64_t wrapped(std::int64_t at, unsigned axis) const {
        const std::int64_t size = shape_[axis];
        if (at >= 0 && at < size) return at;
        if (boundary_[axis] == hanare::Boundary::kPeriodic) return (at + size) % size;
        return at < 0 ? -1 - at : 2 * size - 1 - at;
    }

    template <typename Function>
    void visit(unsigned axis, Index& index, std::int64_t radius, Function& function) const {
        if (axis == D) {
            function(index);
            return;
        }
        const std::int64_t frame = boundary_[axis] == hanare::Boundary::kFixed ? radius : 0;
        for (std::int64_t at = frame; at < shape_[axis] - frame; ++at) {
            index[axis] = at;
            visit(axis + 1, index, radius, function);
        }
    }

    Index shape_;
    std::array<hanare::Boundary, D> boundary_;
    std::vector<T> cells_;
};

/* Cells around one, as lambdas see them. */
template <typename T, unsigned D>
struct Around {
    Plain<T, D>& field;
    typename Plain<T, D>::Index index;
    T before = 0;

    template <typename... Offsets>
    T operator()(Offsets... offsets) const {
        typename Plain<T, D>::Index at = index;
        unsigned axis = 0;
        ((at[axis++] += offsets), ...);
        return field[at];
    }
    T old() const { return before; }
};
