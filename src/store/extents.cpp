// SPDX-License-Identifier: Apache-2.0
#include "store/extents.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/units.hpp"

namespace hanare::store {

ExtentAllocator::ExtentAllocator(uint64_t size_bytes) {
    if (size_bytes > 0) free_.push_back({0, size_bytes});
}

std::optional<uint64_t> ExtentAllocator::reserve(uint64_t bytes) {
    HANARE_ASSERT(bytes > 0 && bytes % kOsPageBytes == 0);
    // Free extents are separated by reserved ones, so there is at most one more of them: with this
    // room release() need not allocate.
    const size_t extents_max = reserved_count_ + 2;
    if (free_.capacity() < extents_max) free_.reserve(2 * extents_max);
    for (auto extent = free_.begin(); extent != free_.end(); ++extent) {
        const uint64_t offset = round_up(extent->start, kAlignmentBytes);
        if (offset < extent->start || offset >= extent->end || extent->end - offset < bytes)
            continue;
        const Extent before = {extent->start, offset};
        const Extent after = {offset + bytes, extent->end};
        if (before.start == before.end && after.start == after.end) {
            free_.erase(extent);
        } else if (before.start == before.end) {
            *extent = after;
        } else {
            *extent = before;
            if (after.start != after.end) free_.insert(extent + 1, after);
        }
        ++reserved_count_;
        return offset;
    }
    return std::nullopt;
}

void ExtentAllocator::release(uint64_t offset, uint64_t bytes) noexcept {
    HANARE_ASSERT(reserved_count_ > 0 && bytes > 0 && bytes % kOsPageBytes == 0);
    --reserved_count_;
    const uint64_t end = offset + bytes;
    const auto after = std::find_if(free_.begin(), free_.end(),
                                    [&](const Extent& extent) { return extent.start >= offset; });
    const bool is_last = after == free_.end();
    const bool is_first = after == free_.begin();
    HANARE_ASSERT(is_last || end <= after->start);
    HANARE_ASSERT(is_first || (after - 1)->end <= offset);
    const bool joins_after = !is_last && after->start == end;
    const bool joins_before = !is_first && (after - 1)->end == offset;
    if (joins_before && joins_after) {
        (after - 1)->end = after->end;
        free_.erase(after);
    } else if (joins_before) {
        (after - 1)->end = end;
    } else if (joins_after) {
        after->start = offset;
    } else {
        HANARE_ASSERT(free_.size() < free_.capacity());
        free_.insert(after, {offset, end});
    }
}

uint64_t ExtentAllocator::largest_bytes() const noexcept {
    uint64_t largest = 0;
    for (const Extent& extent : free_) {
        const uint64_t offset = round_up(extent.start, kAlignmentBytes);
        if (offset >= extent.start && offset < extent.end) {
            largest = std::max(largest, extent.end - offset);
        }
    }
    return largest;
}

}  // namespace hanare::store
