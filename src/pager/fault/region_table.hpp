// SPDX-License-Identifier: Apache-2.0
//
// RegionTable: which region an address belongs to.  Fault handlers look addresses up without a lock
// in an immutable sorted snapshot; publish() and withdraw() replace the snapshot and wait until no
// handler looks at the old one (as SRCU does).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/result.hpp"
#include "pager/fault/region.hpp"

namespace hanare::pager {

class RegionTable {
public:
    constexpr RegionTable() = default;

    // The region that contains the address, entered, or nullptr.  Async-signal-safe.
    Region* enter(const void* address) noexcept;

    // Calls visit(Region&) for every region; only where no other thread runs (a forked child).
    template <typename Visit>
    void for_each(Visit visit) noexcept {
        Snapshot* snapshot = current_.load(std::memory_order_acquire);
        if (snapshot == nullptr) return;
        for (size_t i = 0; i < snapshot->count; ++i) visit(*snapshot->regions()[i]);
    }

    // Normal context only; the caller serialises them.
    Result<void> publish(Region& region);
    void withdraw(const Region& region) noexcept;

private:
    struct Snapshot {
        size_t count;
        Region** regions() { return reinterpret_cast<Region**>(this + 1); }  // sorted by address
    };

    static Snapshot* make_snapshot(size_t count) noexcept;
    void replace(Snapshot* next) noexcept;
    void wait_for_readers() noexcept;

    std::atomic<Snapshot*> current_{nullptr};
    std::atomic<uint32_t> epoch_{0};
    std::atomic<uint32_t> readers_[2] = {};
};

// The process's one table.
RegionTable& region_table() noexcept;

}  // namespace hanare::pager
