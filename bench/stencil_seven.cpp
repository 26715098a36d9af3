// SPDX-License-Identifier: Apache-2.0
#include "bench/stencil_seven.hpp"

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <thread>

#include "base/prng.hpp"
#include "bench/kernel_attributes.hpp"
#include "bench/table.hpp"

namespace hanare::bench {
namespace {

constexpr int64_t kLineCells = 64 / sizeof(double);

// Two rows that are computed, or the first of them alone, and what is next to them.
struct Rows {
    const double* below;  // the plane before
    const double* here;
    const double* above;
    double* out;
    int64_t stride;
};

HANARE_KERNEL void plain_row(const Rows& rows, int64_t cells) {
    const double* const below = rows.below;
    const double* const here = rows.here;
    const double* const above = rows.above;
    const double* const up = here - rows.stride;
    const double* const down = here + rows.stride;
    double* const out = rows.out;
#pragma omp simd
    for (int64_t i = 0; i < cells; ++i) {
        const double sides = (up[i] + down[i]) + (here[i - 1] + here[i + 1]);
        out[i] = __builtin_fma(kSevenSide, (below[i] + above[i]) + sides, kSevenCentre * here[i]);
    }
}

#define HANARE_WIDE [[gnu::target("avx512f")]] inline

HANARE_WIDE __m512d wide(__m512d centre, __m512d up, __m512d down, __m512d below, __m512d above,
                         __m512d left, __m512d right) {
    const __m512d sides = _mm512_add_pd(_mm512_add_pd(up, down), _mm512_add_pd(left, right));
    const __m512d sum = _mm512_add_pd(_mm512_add_pd(below, above), sides);
    return _mm512_fmadd_pd(_mm512_set1_pd(kSevenSide), sum,
                           _mm512_mul_pd(_mm512_set1_pd(kSevenCentre), centre));
}

template <bool kIsStreamed>
HANARE_WIDE void store(double* to, __mmask8 mask, __m512d value) {
    if (mask != 0xff) {
        _mm512_mask_storeu_pd(to, mask, value);
    } else if constexpr (kIsStreamed) {
        _mm512_stream_pd(to, value);
    } else {
        _mm512_storeu_pd(to, value);
    }
}

HANARE_WIDE __m512d load(__mmask8 mask, const double* from) {
    return _mm512_maskz_loadu_pd(mask, from);
}

// One vector of both rows, which share two loads, or of the first one.
template <bool kAreTwo, bool kIsStreamed>
HANARE_WIDE void vectors(const Rows& rows, int64_t i, __mmask8 mask) {
    const int64_t s = rows.stride;
    const double* const u = rows.here + i;
    const __m512d first = load(mask, u);
    const __m512d second = load(mask, u + s);
    store<kIsStreamed>(rows.out + i, mask,
                       wide(first, load(mask, u - s), second, load(mask, rows.below + i),
                            load(mask, rows.above + i), load(mask, u - 1), load(mask, u + 1)));
    if constexpr (kAreTwo) {
        store<kIsStreamed>(
            rows.out + i + s, mask,
            wide(second, first, load(mask, u + 2 * s), load(mask, rows.below + i + s),
                 load(mask, rows.above + i + s), load(mask, u + s - 1), load(mask, u + s + 1)));
    }
}

// Stores begin at multiples of 64 bytes; what is before and after is masked.
template <bool kAreTwo, bool kIsStreamed>
[[gnu::target("avx512f")]] void wide_rows(const Rows& rows, int64_t cells) {
    const auto place = std::bit_cast<uintptr_t>(rows.out) / sizeof(double);
    int64_t i = std::min(cells, static_cast<int64_t>(-place % kLineCells));
    if (i > 0) vectors<kAreTwo, false>(rows, 0, static_cast<__mmask8>((1u << i) - 1));
    for (; i + kLineCells <= cells; i += kLineCells) {
        vectors<kAreTwo, kIsStreamed>(rows, i, 0xff);
    }
    if (i < cells) vectors<kAreTwo, false>(rows, i, static_cast<__mmask8>((1u << (cells - i)) - 1));
}

bool has_wide_vectors() {
    static const bool has = __builtin_cpu_supports("avx512f") != 0;
    return has;
}

template <bool kIsStreamed>
void update_rows(Rows rows, int64_t count, int64_t cells) {
    const auto advance = [&](int64_t by) {
        rows.below += by * rows.stride;
        rows.here += by * rows.stride;
        rows.above += by * rows.stride;
        rows.out += by * rows.stride;
    };
    if (!has_wide_vectors()) {
        for (int64_t row = 0; row < count; ++row, advance(1)) plain_row(rows, cells);
        return;
    }
    // Where both rows are to go past the cache, both have to begin at the same place in a line.
    const bool are_alike = !kIsStreamed || rows.stride % kLineCells == 0;
    int64_t row = 0;
    for (; are_alike && row + 2 <= count; row += 2, advance(2)) {
        wide_rows<true, kIsStreamed>(rows, cells);
    }
    for (; row < count; ++row, advance(1)) wide_rows<false, kIsStreamed>(rows, cells);
    if constexpr (kIsStreamed) _mm_sfence();
}

uint64_t mixed(double value, uint64_t index) {
    const uint64_t word = std::bit_cast<uint64_t>(value) ^ (index * 0x9e3779b97f4a7c15u);
    const uint64_t product = (word ^ (word >> 31)) * 0xbf58476d1ce4e5b9u;
    return product ^ (product >> 32);
}

double relative(double found, double expected) {
    const double difference = std::fabs(found - expected) / std::max(std::fabs(expected), 1e-300);
    return difference >= 0 ? difference : std::numeric_limits<double>::infinity();
}

}  // namespace

SevenShape seven_shape(uint64_t domain_bytes) {
    const double cells = static_cast<double>(domain_bytes) / (2 * sizeof(double));
    const auto eighths = static_cast<int64_t>(std::cbrt(cells / 4) / 8 + 0.5) | 1;
    SevenShape shape;
    shape.x = 8 * eighths;
    shape.y = std::max<int64_t>(8, static_cast<int64_t>(2 * std::cbrt(cells / 4)) / 8 * 8);
    shape.z = std::max<int64_t>(8, static_cast<int64_t>(cells) / shape.plane_cells());
    return shape;
}

double seven_initial(uint64_t index) {
    uint64_t state = index;
    return static_cast<double>(splitmix64(state) >> 11) * 0x1p-53;
}

void seven_fill_plane(const SevenShape& shape, int64_t plane, double* cells) {
    const auto first = static_cast<uint64_t>(plane * shape.plane_cells());
    for (int64_t i = 0; i < shape.plane_cells(); ++i) {
        cells[i] = seven_initial(first + static_cast<uint64_t>(i));
    }
}

void in_parallel(unsigned threads, int64_t count, const std::function<void(int64_t)>& part) {
    std::atomic<int64_t> next{0};
    const auto work = [&] {
        for (int64_t number = next++; number < count; number = next++) part(number);
    };
    std::vector<std::jthread> others;
    for (unsigned i = 1; i < threads; ++i) others.emplace_back(work);
    work();
}

void seven_plain(const SevenShape& shape, const double* from, double* to, int64_t begin,
                 int64_t end) {
    for (int64_t z = std::max<int64_t>(begin, 1); z < std::min(end, shape.z - 1); ++z) {
        for (int64_t y = 1; y < shape.y - 1; ++y) {
            const int64_t first = z * shape.plane_cells() + y * shape.x + 1;
            plain_row({from + first - shape.plane_cells(), from + first,
                       from + first + shape.plane_cells(), to + first, shape.x},
                      shape.x - 2);
        }
    }
}

std::string SevenBlocks::name() const {
    return format("%lld rows%s", static_cast<long long>(rows),
                  is_streamed ? ", stores past the cache" : "");
}

std::vector<SevenBlocks> seven_candidates(const SevenShape& shape) {
    std::vector<SevenBlocks> candidates;
    for (const bool is_streamed : {false, true}) {
        for (const int64_t rows : {8, 16, 32, 64, 128}) {
            if (rows == 8 || rows < shape.y) candidates.push_back({rows, is_streamed});
        }
    }
    return candidates;
}

void seven_block(const SevenShape& shape, const double* from, double* to, bool is_streamed,
                 int64_t begin, int64_t end, int64_t row_begin, int64_t row_end) {
    row_begin = std::max<int64_t>(row_begin, 1);
    row_end = std::min(row_end, shape.y - 1);
    for (int64_t z = std::max<int64_t>(begin, 1); z < std::min(end, shape.z - 1); ++z) {
        const int64_t first = z * shape.plane_cells() + row_begin * shape.x + 1;
        const Rows rows = {from + first - shape.plane_cells(), from + first,
                           from + first + shape.plane_cells(), to + first, shape.x};
        if (is_streamed) {
            update_rows<true>(rows, row_end - row_begin, shape.x - 2);
        } else {
            update_rows<false>(rows, row_end - row_begin, shape.x - 2);
        }
    }
}

void seven_kernel(const hanare_stencil_box* box) {
    const Rows rows = {
        static_cast<const double*>(box->in[0]), static_cast<const double*>(box->in[1]),
        static_cast<const double*>(box->in[2]), static_cast<double*>(box->out[0]), box->row_stride};
    update_rows<false>(rows, box->rows, box->columns);
}

int64_t seven_sample(const SevenShape& shape, int64_t number) {
    uint64_t state = static_cast<uint64_t>(number);
    return static_cast<int64_t>(splitmix64(state) % static_cast<uint64_t>(shape.cells()));
}

SevenResult seven_result(const SevenShape& shape, unsigned threads, const SevenPlane& plane) {
    SevenResult result;
    const int64_t groups = std::min(kSevenSums, shape.z);
    result.sums.resize(static_cast<size_t>(groups));
    result.cells.resize(static_cast<size_t>(kSevenCells));
    std::atomic<uint64_t> digest{0};
    in_parallel(threads, groups, [&](int64_t group) {
        std::vector<double> room(static_cast<size_t>(shape.plane_cells()));
        double sum = 0;
        uint64_t words = 0;
        for (int64_t z = shape.z * group / groups; z < shape.z * (group + 1) / groups; ++z) {
            const double* const cells = plane(z, room.data());
            const int64_t first = z * shape.plane_cells();
            double of_plane = 0;
            for (int64_t i = 0; i < shape.plane_cells(); ++i) {
                of_plane += cells[i];
                words += mixed(cells[i], static_cast<uint64_t>(first + i));
            }
            sum += of_plane;
            for (int64_t number = 0; number < kSevenCells; ++number) {
                const int64_t i = seven_sample(shape, number) - first;
                if (i < 0 || i >= shape.plane_cells()) continue;
                result.cells[static_cast<size_t>(number)] = cells[i];
            }
        }
        result.sums[static_cast<size_t>(group)] = sum;
        digest += words;
    });
    result.digest = digest;
    return result;
}

double seven_difference(const SevenResult& found, const SevenResult& expected) {
    if (found.sums.size() != expected.sums.size() || found.cells.size() != expected.cells.size() ||
        found.sums.empty()) {
        return std::numeric_limits<double>::infinity();
    }
    double largest = 0;
    for (size_t i = 0; i < found.sums.size(); ++i) {
        largest = std::max(largest, relative(found.sums[i], expected.sums[i]));
    }
    for (size_t i = 0; i < found.cells.size(); ++i) {
        largest = std::max(largest, relative(found.cells[i], expected.cells[i]));
    }
    return largest;
}

}  // namespace hanare::bench
