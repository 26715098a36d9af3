// SPDX-License-Identifier: Apache-2.0
//
// BounceRing: memory for what is written in another form than it has here, from when it is started
// until it is done, in that order.
//
// take() by one thread at a time, give_back() by one; async-signal-safe, nothing allocates.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/result.hpp"
#include "sys/memory.hpp"

namespace hanare::remote {

class BounceRing {
public:
    // For pieces of up to half of `bytes`, so that it stays in the processor's cache; for larger
    // ones it grows, when it is empty, up to `bytes_max`.
    static Result<BounceRing> make(size_t bytes, size_t bytes_max);
    BounceRing(BounceRing&& other) noexcept
        : memory_(std::move(other.memory_)), bytes_(other.bytes_) {}

    // nullptr: there is not so much in one piece now.
    std::byte* take(size_t bytes) noexcept;
    // The oldest, of so many bytes.
    void give_back(size_t bytes) noexcept;

private:
    BounceRing(sys::Mapping memory, size_t bytes) : memory_(std::move(memory)), bytes_(bytes) {}

    void grow_for(size_t piece_bytes) noexcept;

    // What is left at the end of the memory where a piece does not fit.
    size_t skipped(uint64_t position, size_t bytes) const noexcept;

    sys::Mapping memory_;
    size_t bytes_;                    // of it, in use
    std::atomic<uint64_t> taken_{0};  // bytes, ever
    std::atomic<uint64_t> given_{0};
};

}  // namespace hanare::remote
