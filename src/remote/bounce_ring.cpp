// SPDX-License-Identifier: Apache-2.0
#include "remote/bounce_ring.hpp"

#include "base/units.hpp"

namespace hanare::remote {

Result<BounceRing> BounceRing::make(size_t bytes) {
    HANARE_TRY_ASSIGN(sys::Mapping memory, sys::Mapping::reserve(bytes, kOsPageBytes));
    return BounceRing(std::move(memory));
}

size_t BounceRing::skipped(uint64_t position, size_t bytes) const noexcept {
    const size_t to_end = memory_.bytes() - position % memory_.bytes();
    return bytes > to_end ? to_end : 0;
}

std::byte* BounceRing::take(size_t bytes) noexcept {
    if (bytes > memory_.bytes()) return nullptr;
    const uint64_t taken = taken_.load(std::memory_order_relaxed);
    const uint64_t begin = taken + skipped(taken, bytes);
    const uint64_t end = begin + bytes;
    if (end - given_.load(std::memory_order_acquire) > memory_.bytes()) return nullptr;
    taken_.store(end, std::memory_order_relaxed);
    return memory_.address() + begin % memory_.bytes();
}

void BounceRing::give_back(size_t bytes) noexcept {
    const uint64_t given = given_.load(std::memory_order_relaxed);
    given_.store(given + skipped(given, bytes) + bytes, std::memory_order_release);
}

}  // namespace hanare::remote
