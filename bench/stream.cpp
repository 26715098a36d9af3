// SPDX-License-Identifier: Apache-2.0
#include "bench/stream.hpp"

#include <bit>
#include <cmath>

#include "base/prng.hpp"
#include "bench/kernel_attributes.hpp"

namespace hanare::bench {
namespace {

// With a' = b + s*c = s*a + s*(a + s*a) the factor per round is s*(2 + s): 1 for s = sqrt(2) - 1,
// which keeps the values where they are.
const double kScalar = std::sqrt(2.0) - 1.0;
constexpr double kTolerance = 1e-9;  // relative; rounding gives 1e-16 per round

double initial(size_t index) {
    uint64_t state = index;
    return std::bit_cast<double>(0x3ff0000000000000 | (splitmix64(state) >> 12));
}

HANARE_KERNEL void copy(double* __restrict c, const double* __restrict a, size_t count) {
#pragma omp simd
    for (size_t i = 0; i < count; ++i) c[i] = a[i];
}

HANARE_KERNEL void scale(double* __restrict b, const double* __restrict c, double s, size_t count) {
#pragma omp simd
    for (size_t i = 0; i < count; ++i) b[i] = s * c[i];
}

HANARE_KERNEL void add(double* __restrict c, const double* __restrict a, const double* __restrict b,
                       size_t count) {
#pragma omp simd
    for (size_t i = 0; i < count; ++i) c[i] = a[i] + b[i];
}

HANARE_KERNEL void triad(double* __restrict a, const double* __restrict b,
                         const double* __restrict c, double s, size_t count) {
#pragma omp simd
    for (size_t i = 0; i < count; ++i) a[i] = b[i] + s * c[i];
}

bool differs(double found, double expected) {
    return !(std::fabs(found - expected) <= kTolerance * std::fabs(expected));
}

}  // namespace

const char* stream_kernel_name(StreamKernel kernel) {
    constexpr const char* kNames[kStreamKernels] = {"copy", "scale", "add", "triad"};
    return kNames[static_cast<int>(kernel)];
}

void stream_fill(const StreamArrays& arrays) {
    for (size_t i = 0; i < arrays.count; ++i) {
        const double value = initial(i);
        arrays.a[i] = value;
        arrays.b[i] = value;
        arrays.c[i] = value;
    }
}

void stream_run(StreamKernel kernel, const StreamArrays& arrays) {
    switch (kernel) {
        case StreamKernel::kCopy: return copy(arrays.c, arrays.a, arrays.count);
        case StreamKernel::kScale: return scale(arrays.b, arrays.c, kScalar, arrays.count);
        case StreamKernel::kAdd: return add(arrays.c, arrays.a, arrays.b, arrays.count);
        case StreamKernel::kTriad:
            return triad(arrays.a, arrays.b, arrays.c, kScalar, arrays.count);
    }
}

uint64_t stream_bytes(StreamKernel kernel, size_t count) {
    const bool three = kernel == StreamKernel::kAdd || kernel == StreamKernel::kTriad;
    return uint64_t{count} * sizeof(double) * (three ? 3 : 2);
}

std::optional<size_t> stream_verify(const StreamArrays& arrays, int rounds) {
    // The kernels act on each element alone and linearly: find the factors once.
    double a = 1, b = 1, c = 1;
    for (int round = 0; round < rounds; ++round) {
        c = a;
        b = kScalar * c;
        c = a + b;
        a = b + kScalar * c;
    }
    for (size_t i = 0; i < arrays.count; ++i) {
        const double value = initial(i);
        if (differs(arrays.a[i], a * value) || differs(arrays.b[i], b * value) ||
            differs(arrays.c[i], c * value)) {
            return i;
        }
    }
    return std::nullopt;
}

}  // namespace hanare::bench
