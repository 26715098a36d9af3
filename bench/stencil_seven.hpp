// SPDX-License-Identifier: Apache-2.0
//
// What `hanare bench stencil` computes: 7 points, double, fixed faces, u = 0.4 u + 0.1 (the six
// cells around), the last operation fused.  The plain sweep, one by spatial blocks, and the kernel
// of Hanare's grids do the same operations in the same order: their results are equal, bit by bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "hanare/stencil.h"

namespace hanare::bench {

inline constexpr double kSevenFlops = 8;  // that a cell's update needs
inline constexpr double kSevenCentre = 0.4;
inline constexpr double kSevenSide = 0.1;

// Cells, the fastest last.
struct SevenShape {
    int64_t z = 0;
    int64_t y = 0;
    int64_t x = 0;

    int64_t plane_cells() const { return y * x; }
    int64_t cells() const { return z * y * x; }
    uint64_t buffer_bytes() const { return static_cast<uint64_t>(cells()) * sizeof(double); }
    // As the paper counts a domain.
    uint64_t domain_bytes() const { return 2 * buffer_bytes(); }
    // That a step updates.
    double updates() const {
        return static_cast<double>(z - 2) * static_cast<double>(y - 2) * static_cast<double>(x - 2);
    }
};

// A domain of about so many bytes, shaped as the paper's largest: twice as long along y and z as
// along x, which is an odd multiple of 8 cells, so that rows do not meet in the same cache sets.
SevenShape seven_shape(uint64_t domain_bytes);

// What cell number `index` begins with: 0 <= value < 1.
double seven_initial(uint64_t index);
void seven_fill_plane(const SevenShape& shape, int64_t plane, double* cells);

// By `threads` threads, each taking the next of `count` parts when it has done one.
void in_parallel(unsigned threads, int64_t count, const std::function<void(int64_t)>& part);

// One step over planes [begin, end): what a program does that nobody has thought about.
void seven_plain(const SevenShape& shape, const double* from, double* to, int64_t begin,
                 int64_t end);

// Rows [row_begin, row_end) of planes [begin, end), several rows at a time.
struct SevenBlocks {
    int64_t rows = 0;          // of a block
    bool is_streamed = false;  // results go past the cache
    std::string name() const;
};
void seven_block(const SevenShape& shape, const double* from, double* to, bool is_streamed,
                 int64_t begin, int64_t end, int64_t row_begin, int64_t row_end);
// What is tried before the best one is taken.
std::vector<SevenBlocks> seven_candidates(const SevenShape& shape);

// Of hanare_stencil_stage.
void seven_kernel(const hanare_stencil_box* box);

// What results are compared by: all bits of all cells; and, where operations have another order,
// sums of so many groups of planes, and so many cells.
struct SevenResult {
    uint64_t digest = 0;
    std::vector<double> sums;
    std::vector<double> cells;
};
inline constexpr int64_t kSevenSums = 128;
inline constexpr int64_t kSevenCells = 256;
// Cell number `number` of these.
int64_t seven_sample(const SevenShape& shape, int64_t number);
// `read` puts a plane to memory that it is given, or returns where it is.
using SevenPlane = std::function<const double*(int64_t plane, double* room)>;
SevenResult seven_result(const SevenShape& shape, unsigned threads, const SevenPlane& plane);

// The largest relative difference; infinite where there is nothing to compare.
double seven_difference(const SevenResult& found, const SevenResult& expected);

}  // namespace hanare::bench
