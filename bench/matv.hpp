// SPDX-License-Identifier: Apache-2.0
//
// matv, the paper's example program (DLM 2009, Fig. 3): write a, write x, y = a * x, in doubles.
// Unlike the figure, the elements are random: each is a function of its index alone, so any of them
// can be computed again, and all lie in [1, 2), so none is zero or denormal.
// No state; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hanare::bench {

enum class MatvPhase { kWriteA, kWriteX, kMultiply };
inline constexpr int kMatvPhases = 3;
const char* matv_phase_name(MatvPhase phase);  // the paper's: "write a", "write x", "mul a*x"

// Square matrix `a`, row by row, and two vectors of n doubles; n is a multiple of 8.
struct MatvArrays {
    double* a = nullptr;
    double* x = nullptr;
    double* y = nullptr;
    uint64_t n = 0;
};

// Called now and then with the elements done and to do in a phase.
using MatvProgress = std::function<void(MatvPhase phase, uint64_t done, uint64_t total)>;

struct MatvTimes {
    double seconds[kMatvPhases] = {};
    double total() const { return seconds[0] + seconds[1] + seconds[2]; }
};

MatvTimes run_matv(const MatvArrays& arrays, const MatvProgress& progress);

// y computed from the elements' definition in private memory, in the same order of summation, so
// that an undamaged run gives the same bits.  Ends early, with a short result, when `stop` says so.
std::vector<double> matv_reference(uint64_t n, const std::function<bool()>& stop);

// The first element of y, given as bits, that differs from the reference, as text; empty when all
// are equal.
std::string matv_mismatch(const std::vector<uint64_t>& y_bits,
                          const std::vector<double>& reference);

// Row r of the product, summed in extended precision one after the other: checks the kernel.
double matv_row_exact(uint64_t n, uint64_t row);

// Largest n, a multiple of `multiple`, whose matrix fits into `bytes`; 0 when none does.
uint64_t matv_order(uint64_t bytes, uint64_t multiple);

}  // namespace hanare::bench
