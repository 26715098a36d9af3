// SPDX-License-Identifier: Apache-2.0
#include "remote/bounce_ring.hpp"

#include <algorithm>

#include "base/units.hpp"

namespace hanare::remote {

Result<BounceRing> BounceRing::make(size_t bytes, size_t bytes_max) {
    HANARE_TRY_ASSIGN(sys::Mapping memory, sys::Mapping::reserve(bytes_max, kOsPageBytes));
    return BounceRing(std::move(memory), std::min(bytes, bytes_max));
}

size_t BounceRing::skipped(uint64_t position, size_t bytes) const noexcept {
    const size_t to_end = bytes_ - position % bytes_;
    return bytes > to_end ? to_end : 0;
}

std::byte* BounceRing::take(size_t bytes) noexcept {
    if (2 * bytes > bytes_) grow_for(bytes);
    if (bytes > bytes_) return nullptr;
    const uint64_t taken = taken_.load(std::memory_order_relaxed);
    const uint64_t begin = taken + skipped(taken, bytes);
    const uint64_t end = begin + bytes;
    if (end - given_.load(std::memory_order_acquire) > bytes_) return nullptr;
    taken_.store(end, std::memory_order_relaxed);
    return memory_.address() + begin % bytes_;
}

// Nobody gives anything back while it is empty.
void BounceRing::grow_for(size_t piece_bytes) noexcept {
    const uint64_t taken = taken_.load(std::memory_order_relaxed);
    if (given_.load(std::memory_order_acquire) != taken) return;
    bytes_ = std::max(bytes_, std::min(2 * piece_bytes, memory_.bytes()));
    taken_.store(0, std::memory_order_relaxed);
    given_.store(0, std::memory_order_relaxed);
}

void BounceRing::give_back(size_t bytes) noexcept {
    const uint64_t given = given_.load(std::memory_order_relaxed);
    given_.store(given + skipped(given, bytes) + bytes, std::memory_order_release);
}

}  // namespace hanare::remote
