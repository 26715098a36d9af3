// SPDX-License-Identifier: Apache-2.0
#include "sys/unique_numbers.hpp"

#include <new>
#include <sys/mman.h>

#include "base/assert.hpp"
#include "base/units.hpp"

namespace hanare::sys {
namespace {

// The last number of a range is never taken, so that `next` never is a number of the range behind.
uint64_t left_in_range(uint64_t next) {
    return UniqueNumbers::kTakenMax - next % UniqueNumbers::kRangeNumbers;
}

}  // namespace

Result<UniqueNumbers> UniqueNumbers::make(uint64_t first_range) {
    HANARE_ASSERT(first_range > 0);
    HANARE_TRY_ASSIGN(Mapping own, Mapping::reserve(kOsPageBytes, kOsPageBytes));
    if (const int error = own.advise(MADV_WIPEONFORK); error != 0) {
        return fail_errno(HANARE_STATUS_SYSTEM, error, "madvise(MADV_WIPEONFORK) of a page");
    }
    HANARE_TRY_ASSIGN(Mapping shared, Mapping::reserve_shared(kOsPageBytes));
    return UniqueNumbers(std::move(own), std::move(shared), first_range);
}

UniqueNumbers::UniqueNumbers(Mapping own, Mapping shared, uint64_t first_range) noexcept
    : own_(std::move(own)),
      shared_(std::move(shared)),
      next_(new(own_.address()) std::atomic<uint64_t>(0)),
      next_range_(new(shared_.address()) std::atomic<uint64_t>(first_range)) {}

uint64_t UniqueNumbers::take(uint64_t count) noexcept {
    HANARE_ASSERT(count > 0 && count <= kTakenMax);
    uint64_t next = next_->load(std::memory_order_relaxed);
    for (;;) {
        if (next == 0) {
            // No range is begun with 0 in its place: a child that is forked between taking one and
            // the exchange finds 0 there, and would begin it, too.
            if (next_->compare_exchange_strong(next, kTakenMax, std::memory_order_relaxed)) {
                next = kTakenMax;
            }
            continue;
        }
        uint64_t first = next;
        if (left_in_range(next) < count) {
            const uint64_t range = take_range();
            if (range == 0) return 0;
            first = range * kRangeNumbers;
        }
        // Where another thread was faster, a range that was taken here is lost; there are enough.
        if (next_->compare_exchange_strong(next, first + count, std::memory_order_relaxed)) {
            return first;
        }
    }
}

uint64_t UniqueNumbers::take_range() noexcept {
    uint64_t range = next_range_->load(std::memory_order_relaxed);
    while (range < kRanges) {
        if (next_range_->compare_exchange_weak(range, range + 1, std::memory_order_relaxed)) {
            return range;
        }
    }
    return 0;
}

}  // namespace hanare::sys
