// SPDX-License-Identifier: Apache-2.0
//
// SparseMemory: a large array of zeros, of which those pages take memory that were written to.
// Children made by fork get a copy.
#pragma once

#include <cstddef>

#include "base/result.hpp"
#include "sys/memory.hpp"

namespace hanare::sys {

class SparseMemory {
public:
    static Result<SparseMemory> reserve(size_t bytes);

    std::byte* address() const { return memory_.address(); }
    size_t bytes() const { return memory_.bytes(); }

    // Makes [address, address + bytes), which lies in it, zeros again.  Whole pages of it take no
    // memory any more; what others do beside it is not touched.  Async-signal-safe.
    void clear(std::byte* address, size_t bytes) const noexcept;

private:
    explicit SparseMemory(Mapping memory) noexcept : memory_(std::move(memory)) {}

    Mapping memory_;
};

}  // namespace hanare::sys
