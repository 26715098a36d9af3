// SPDX-License-Identifier: Apache-2.0
//
// Which ranges of a store's file are free: first fit over a sorted list of free extents, neighbours
// joined on release.  First fit keeps the file short, and the list is as short as the number of
// regions, so nothing cleverer is needed.
//
// Not synchronised.  reserve() may allocate; release() never does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace hanare::store {

class ExtentAllocator {
public:
    static constexpr uint64_t kAlignmentBytes = uint64_t{4} << 20;  // the largest block

    // Manages [0, size_bytes).
    explicit ExtentAllocator(uint64_t size_bytes);

    // `bytes` is a positive multiple of the OS page; the result is a multiple of kAlignmentBytes.
    std::optional<uint64_t> reserve(uint64_t bytes);
    // A range as it was reserved.
    void release(uint64_t offset, uint64_t bytes) noexcept;

    // The largest reserve() that would succeed now.
    uint64_t largest_bytes() const noexcept;
    size_t free_extents() const noexcept { return free_.size(); }

private:
    struct Extent {
        uint64_t start;
        uint64_t end;
    };

    std::vector<Extent> free_;  // sorted, never touching each other
    size_t reserved_count_ = 0;
};

}  // namespace hanare::store
