// SPDX-License-Identifier: Apache-2.0
//
// Heat in a square plate with one hot edge, by several tasks that have the plate in common: each
// computes some rows, reads those around them that others have computed, and all stop when nothing
// changes any more.
//
//     hanare launch -n 4 -- dsm_heat [SIZE]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <hanare/dsm.hpp>
#include <mutex>
#include <utility>

namespace {

constexpr double kSmall = 1e-5;  // a change that does not count

// Rows [begin, end) of the next plate, from this one; returns the largest change.
double relax(const double* now, double* next, size_t size, size_t begin, size_t end) {
    double change = 0;
    for (size_t y = begin; y < end; ++y) {
        for (size_t x = 1; x + 1 < size; ++x) {
            const size_t at = y * size + x;
            next[at] = (now[at - size] + now[at + size] + now[at - 1] + now[at + 1]) / 4;
            change = std::max(change, std::abs(next[at] - now[at]));
        }
    }
    return change;
}

int run(size_t size) {
    hanare::dsm::Runtime dsm;
    hanare::dsm::Array<double> one(dsm, size * size);
    hanare::dsm::Array<double> other(dsm, size * size);
    hanare::dsm::Array<double> changes(dsm, 2);  // of this step and the next one, in turns
    hanare::dsm::Lock lock(dsm, 1);
    const size_t inner = size - 2;
    const size_t begin = 1 + inner * dsm.rank() / dsm.size();
    const size_t end = 1 + inner * (dsm.rank() + 1) / dsm.size();
    double* now = one.data();
    double* next = other.data();
    if (dsm.rank() == 0) std::fill(now, now + size, 1.0), std::fill(next, next + size, 1.0);
    dsm.barrier();

    size_t steps = 0;
    for (double change = 1; change > kSmall; ++steps) {
        const double own = relax(now, next, size, begin, end);
        {
            const std::scoped_lock guard(lock);
            changes[steps % 2] = std::max(changes[steps % 2], own);
        }
        dsm.barrier();
        change = changes[steps % 2];
        // Nobody uses the other one between these barriers.
        if (dsm.rank() == 0) changes[(steps + 1) % 2] = 0;
        dsm.barrier();
        std::swap(now, next);
    }

    // The plate is the mirror image of itself, and colder the farther away the edge is.
    bool is_right = true;
    for (size_t y = 1; y + 1 < size; ++y) {
        const double* const row = now + y * size;
        for (size_t x = 1; x + 1 < size; ++x) {
            is_right &= std::abs(row[x] - row[size - 1 - x]) < 1e-9 && row[x] < row[x - size];
        }
    }
    if (dsm.rank() == 0) {
        std::printf("%u tasks, %zu steps, %.4f in the middle: %s\n", dsm.size(), steps,
                    now[size / 2 * size + size / 2], is_right ? "right" : "wrong");
    }
    dsm.finish();
    return is_right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    const int size = argc > 1 ? std::atoi(argv[1]) : 200;
    if (size < 3) {
        std::fprintf(stderr, "dsm_heat: SIZE is 3 or more\n");
        return 2;
    }
    try {
        return run(static_cast<size_t>(size));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "dsm_heat: %s\n", error.what());
        return 1;
    }
}
