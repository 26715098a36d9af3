// SPDX-License-Identifier: Apache-2.0
//
// STREAM's four kernels (McCalpin) on three arrays of doubles.  The values stay in a range without
// zeros and denormals however often the kernels run, and are a function of element and repetition
// only, so the result can be verified.  No state; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace hanare::bench {

enum class StreamKernel { kCopy, kScale, kAdd, kTriad };
inline constexpr int kStreamKernels = 4;
const char* stream_kernel_name(StreamKernel kernel);

struct StreamArrays {
    double* a = nullptr;
    double* b = nullptr;
    double* c = nullptr;
    size_t count = 0;  // elements of each
};

// Fills the arrays with random values in [1, 2).
void stream_fill(const StreamArrays& arrays);

// copy: c = a; scale: b = s*c; add: c = a + b; triad: a = b + s*c, as in STREAM.
void stream_run(StreamKernel kernel, const StreamArrays& arrays);

// Bytes that the kernel reads and writes, counted as STREAM does.
uint64_t stream_bytes(StreamKernel kernel, size_t count);

// Index of an element (any array) that is not what filling and then `rounds` times all four kernels
// in order gives; nothing when all are right.
std::optional<size_t> stream_verify(const StreamArrays& arrays, int rounds);

}  // namespace hanare::bench
