// SPDX-License-Identifier: Apache-2.0
//
// The side of RegionTable that allocates; the look-up is in fault/.
#include "pager/fault/region_table.hpp"

#include <algorithm>
#include <new>
#include <sched.h>

#include "base/assert.hpp"

namespace hanare::pager {

RegionTable::Snapshot* RegionTable::make_snapshot(size_t count) noexcept {
    auto* snapshot = static_cast<Snapshot*>(
        ::operator new(sizeof(Snapshot) + count * sizeof(Region*), std::nothrow));
    if (snapshot != nullptr) snapshot->count = count;
    return snapshot;
}

Result<void> RegionTable::publish(Region& region) {
    Snapshot* now = current_.load(std::memory_order_acquire);
    const size_t count = now == nullptr ? 0 : now->count;
    Snapshot* next = make_snapshot(count + 1);
    if (next == nullptr) return fail(HANARE_STATUS_NO_MEMORY, "no memory for the region table");
    Region* const* begin = now == nullptr ? nullptr : now->regions();
    Region* const* position = std::find_if(
        begin, begin + count, [&](const Region* other) { return other->begin() > region.begin(); });
    Region** out = std::copy(begin, position, next->regions());
    *out++ = &region;
    std::copy(position, begin + count, out);
    replace(next);
    return {};
}

void RegionTable::withdraw(const Region& region) noexcept {
    Snapshot* now = current_.load(std::memory_order_acquire);
    Snapshot* next = make_snapshot(now->count - 1);
    HANARE_ASSERT(next != nullptr);  // a few bytes less than what is freed next
    std::remove_copy(now->regions(), now->regions() + now->count, next->regions(), &region);
    replace(next);
}

void RegionTable::replace(Snapshot* next) noexcept {
    Snapshot* old = current_.exchange(next, std::memory_order_seq_cst);
    wait_for_readers();
    ::operator delete(old);
}

// Two phases: a reader may have read the epoch before a flip and count itself after it.
void RegionTable::wait_for_readers() noexcept {
    for (int phase = 0; phase < 2; ++phase) {
        const uint32_t old = epoch_.fetch_add(1, std::memory_order_seq_cst) & 1;
        while (readers_[old].load(std::memory_order_seq_cst) != 0) sched_yield();
    }
}

RegionTable& region_table() noexcept {
    static constinit RegionTable table;
    return table;
}

}  // namespace hanare::pager
