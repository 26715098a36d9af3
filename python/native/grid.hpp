// SPDX-License-Identifier: Apache-2.0
//
// The part of hanare._native that is about grids and stencils (grid.cpp, grid_run.cpp).
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "hanare/hanare.hpp"
#include "hanare/stencil.h"

// A grid of the C API.  `busy`: a call without the interpreter's lock is at work in it; another one
// is refused, as the C API leaves it to its users that there is none.
class Grid {
public:
    explicit Grid(hanare_grid* grid) : grid_(grid) {}
    Grid(const Grid&) = delete;
    Grid& operator=(const Grid&) = delete;
    ~Grid();

    class Use {
    public:
        explicit Use(Grid& grid);
        Use(const Use&) = delete;
        Use& operator=(const Use&) = delete;
        ~Use() { grid_.busy_ = false; }
        hanare_grid* operator*() const { return grid_.grid_; }

    private:
        Grid& grid_;
    };

    void close();

private:
    hanare_grid* grid_;
    bool busy_ = false;
};

nanobind::dict as_dict(const hanare_grid_statistics& statistics);

void define_grids(nanobind::module_& module);
void define_runs(nanobind::class_<Grid>& grid);
