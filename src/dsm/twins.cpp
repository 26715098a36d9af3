// SPDX-License-Identifier: Apache-2.0
#include "dsm/twins.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace hanare::dsm {

Result<Twins> Twins::make(uint32_t blocks) {
    const size_t numbers_bytes = size_t{blocks} * sizeof(uint32_t);
    HANARE_TRY_ASSIGN(auto memory, sys::SparseMemory::reserve(size_t{blocks} * kBlockBytes));
    HANARE_TRY_ASSIGN(auto places, sys::SparseMemory::reserve(numbers_bytes));
    HANARE_TRY_ASSIGN(auto kept, sys::SparseMemory::reserve(numbers_bytes));
    HANARE_TRY_ASSIGN(auto empty, sys::SparseMemory::reserve(numbers_bytes));
    return Twins(std::move(memory), std::move(places), std::move(kept), std::move(empty));
}

std::byte* Twins::take(uint32_t block) noexcept {
    if (place(block) == 0) {
        const sys::LockGuard guard(lock_);
        uint32_t number = 0;
        if (kept_count_ > 0) {
            number = numbers(kept_)[--kept_count_];
        } else if (empty_count_ > 0) {
            number = numbers(empty_)[--empty_count_];
        } else {
            number = made_++;
        }
        place(block) = number + 1;
    }
    return of(block);
}

void Twins::give_back(uint32_t block) noexcept {
    const uint32_t number = place(block) - 1;
    place(block) = 0;
    const sys::LockGuard guard(lock_);
    numbers(kept_)[kept_count_++] = number;
}

// The lock is not held over system calls.
void Twins::trim() noexcept {
    std::array<uint32_t, kTrimmedAtOnce> room;
    for (;;) {
        uint32_t count = 0;
        {
            const sys::LockGuard guard(lock_);
            while (kept_count_ > kKeptMax && count < room.size()) {
                room[count++] = numbers(kept_)[--kept_count_];
            }
            trimmed_ += count;
        }
        if (count == 0) return;
        const std::span<uint32_t> taken(room.data(), count);
        std::ranges::sort(taken);
        for (size_t first = 0; first < taken.size();) {
            size_t end = first + 1;
            while (end < taken.size() && taken[end] == taken[end - 1] + 1) ++end;
            memory_.clear(address(taken[first]), (end - first) * kBlockBytes);
            first = end;
        }
        const sys::LockGuard guard(lock_);
        for (const uint32_t number : taken) numbers(empty_)[empty_count_++] = number;
        trimmed_ -= count;
    }
}

uint32_t Twins::resident() noexcept {
    const sys::LockGuard guard(lock_);
    return made_ - empty_count_ - trimmed_;
}

}  // namespace hanare::dsm
