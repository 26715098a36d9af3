// SPDX-License-Identifier: Apache-2.0
#include "bench/matv.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>

#include "base/prng.hpp"
#include "bench/kernel_attributes.hpp"
#include "bench/table.hpp"

namespace hanare::bench {
namespace {

constexpr uint64_t kSeedA = 0x6d617476'00000001;
constexpr uint64_t kSeedX = 0x6d617476'00000002;
constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // splitmix64's step

// Element `index` of the sequence: splitmix64 after `index` steps, as the mantissa of [1, 2).
double element(uint64_t seed, uint64_t index) {
    uint64_t state = seed + index * kGolden;
    return std::bit_cast<double>(0x3ff0000000000000 | (splitmix64(state) >> 12));
}

HANARE_KERNEL void fill(double* out, uint64_t seed, uint64_t first, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        uint64_t z = seed + (first + i + 1) * kGolden;  // element(), written so that it vectorises
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        z ^= z >> 31;
        out[i] = std::bit_cast<double>(0x3ff0000000000000 | (z >> 12));
    }
}

HANARE_KERNEL double dot(const double* a, const double* x, size_t count) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < count; ++i) sum += a[i] * x[i];
    return sum;
}

class PhaseTimer {
public:
    explicit PhaseTimer(double& seconds) : seconds_(seconds) {}
    ~PhaseTimer() {
        seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }
    PhaseTimer(const PhaseTimer&) = delete;
    PhaseTimer& operator=(const PhaseTimer&) = delete;

private:
    double& seconds_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Runs row(r) for every row and reports about every percent.
template <typename Row>
void each_row(MatvPhase phase, uint64_t n, const MatvProgress& progress, Row row) {
    const uint64_t step = std::max<uint64_t>(1, n / 100);
    for (uint64_t r = 0; r < n; ++r) {
        row(r);
        if ((r + 1) % step == 0 || r + 1 == n) progress(phase, (r + 1) * n, n * n);
    }
}

}  // namespace

const char* matv_phase_name(MatvPhase phase) {
    constexpr const char* kNames[kMatvPhases] = {"write a", "write x", "mul a*x"};
    return kNames[static_cast<int>(phase)];
}

MatvTimes run_matv(const MatvArrays& arrays, const MatvProgress& progress) {
    const uint64_t n = arrays.n;
    MatvTimes times;
    {
        PhaseTimer timer(times.seconds[0]);
        each_row(MatvPhase::kWriteA, n, progress,
                 [&](uint64_t r) { fill(arrays.a + r * n, kSeedA, r * n, n); });
    }
    {
        PhaseTimer timer(times.seconds[1]);
        fill(arrays.x, kSeedX, 0, n);
    }
    progress(MatvPhase::kWriteX, n, n);
    {
        PhaseTimer timer(times.seconds[2]);
        each_row(MatvPhase::kMultiply, n, progress,
                 [&](uint64_t r) { arrays.y[r] = dot(arrays.a + r * n, arrays.x, n); });
    }
    return times;
}

std::vector<double> matv_reference(uint64_t n, const std::function<bool()>& stop) {
    std::vector<double> x(n);
    std::vector<double> row(n);
    std::vector<double> y;
    fill(x.data(), kSeedX, 0, n);
    for (uint64_t r = 0; r < n && !stop(); ++r) {
        fill(row.data(), kSeedA, r * n, n);
        y.push_back(dot(row.data(), x.data(), n));
    }
    return y;
}

std::string matv_mismatch(const std::vector<uint64_t>& y_bits,
                          const std::vector<double>& reference) {
    if (y_bits.size() != reference.size()) {
        return format("y has %zu rows instead of %zu", y_bits.size(), reference.size());
    }
    for (size_t row = 0; row < y_bits.size(); ++row) {
        if (y_bits[row] == std::bit_cast<uint64_t>(reference[row])) continue;
        return format("y[%zu] is %.17g, must be %.17g", row, std::bit_cast<double>(y_bits[row]),
                      reference[row]);
    }
    return {};
}

double matv_row_exact(uint64_t n, uint64_t row) {
    long double sum = 0;
    for (uint64_t i = 0; i < n; ++i) {
        sum += static_cast<long double>(element(kSeedA, row * n + i)) * element(kSeedX, i);
    }
    return static_cast<double>(sum);
}

uint64_t matv_order(uint64_t bytes, uint64_t multiple) {
    auto n = static_cast<uint64_t>(std::sqrt(static_cast<double>(bytes / sizeof(double))));
    while (n * n * sizeof(double) > bytes) --n;
    return n / multiple * multiple;
}

}  // namespace hanare::bench
