// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/leftovers.hpp"

#include <sys/mman.h>

namespace hanare::pager {

uint64_t Leftovers::add(std::byte* pages, size_t bytes) noexcept {
    const sys::LockGuard guard(lock_);
    const uint64_t generation = generation_.load(std::memory_order_relaxed);
    ranges_[count_++] = {pages, bytes};
    bytes_ += bytes;
    if (count_ == kMost || bytes_ >= kBytesMost) drop_locked();
    return generation;
}

void Leftovers::drop_all() noexcept {
    const sys::LockGuard guard(lock_);
    if (count_ > 0) drop_locked();
}

void Leftovers::drop_locked() noexcept {
    sys::advise_each(ranges_.data(), count_, MADV_DONTNEED);
    count_ = 0;
    bytes_ = 0;
    generation_.fetch_add(1, std::memory_order_release);
}

}  // namespace hanare::pager
