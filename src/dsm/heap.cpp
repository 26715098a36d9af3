// SPDX-License-Identifier: Apache-2.0
#include "dsm/heap.hpp"

#include <iterator>

#include "base/units.hpp"

namespace hanare::dsm {
namespace {

constexpr uint64_t kSmallAlignment = 64;

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

std::optional<uint64_t> Heap::allocate(uint64_t bytes) {
    const uint64_t unit = bytes < kOsPageBytes ? kSmallAlignment : kOsPageBytes;
    const uint64_t wanted = round_up(bytes == 0 ? 1 : bytes, unit);
    if (wanted < bytes) return {};
    const std::lock_guard guard(lock_);
    for (auto range = free_.begin(); range != free_.end(); ++range) {
        const auto [begin, size] = *range;
        const uint64_t offset = round_up(begin, unit);
        const uint64_t skipped = offset - begin;
        if (skipped > size || size - skipped < wanted) continue;
        free_.erase(range);
        if (skipped > 0) free_.emplace(begin, skipped);
        if (size - skipped > wanted) free_.emplace(offset + wanted, size - skipped - wanted);
        used_.emplace(offset, wanted);
        return offset;
    }
    return {};
}

std::optional<uint64_t> Heap::free(uint64_t offset) {
    const std::lock_guard guard(lock_);
    const auto used = used_.find(offset);
    if (used == used_.end()) return {};
    const uint64_t bytes = used->second;
    used_.erase(used);
    auto range = free_.emplace(offset, bytes).first;
    if (const auto next = std::next(range);
        next != free_.end() && range->first + range->second == next->first) {
        range->second += next->second;
        free_.erase(next);
    }
    if (range == free_.begin()) return bytes;
    if (const auto before = std::prev(range); before->first + before->second == range->first) {
        before->second += range->second;
        free_.erase(range);
    }
    return bytes;
}

std::vector<std::pair<uint64_t, uint64_t>> Heap::used() {
    const std::lock_guard guard(lock_);
    return {used_.begin(), used_.end()};
}

}  // namespace hanare::dsm
