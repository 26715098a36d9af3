// SPDX-License-Identifier: Apache-2.0
//
// WriteSets: evictions under way, begun by faulting threads.  What leaves of a sparse block lies in
// several runs; their writes are started together, since a device takes about as long for all as
// for one, and completed by whoever faults next or waits for what they bring (fault_transfers.hpp).
//
// Any thread, fault handlers included.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "hanare/status.h"
#include "store/store.hpp"

namespace hanare::pager {

struct Frame;
struct WriteSet;

struct SetWrite : store::IoRequest {
    WriteSet* set = nullptr;
};

// The writes of one frame.  Belongs to who has taken it, then to the writes: who completes the last
// one goes on with it.
struct WriteSet {
    Frame* frame = nullptr;
    uint64_t leaving_bytes = 0;
    std::array<SetWrite, store::SharedTransfers::kStartMax> writes;
    uint32_t count = 0;
    std::atomic<uint32_t> left{0};
    std::atomic<hanare_status> status{HANARE_STATUS_OK};  // the last that was not OK
    std::atomic<bool> is_taken{false};

    bool is_full() const noexcept { return count == writes.size(); }
    void add(const store::IoRequest& write) noexcept {
        static_cast<store::IoRequest&>(writes[count]) = write;
        writes[count++].set = this;
    }
};

class WriteSets {
public:
    // nullptr when all are in use.
    WriteSet* take() noexcept {
        for (WriteSet& set : sets_) {
            if (set.is_taken.load(std::memory_order_relaxed)) continue;
            if (!set.is_taken.exchange(true, std::memory_order_acquire)) return &set;
        }
        return nullptr;
    }
    // A hint.
    bool has_free() const noexcept {
        return std::ranges::any_of(sets_, [](const WriteSet& set) {
            return !set.is_taken.load(std::memory_order_relaxed);
        });
    }
    // A hint, too.
    size_t free_count() const noexcept {
        return static_cast<size_t>(std::ranges::count_if(sets_, [](const WriteSet& set) {
            return !set.is_taken.load(std::memory_order_relaxed);
        }));
    }
    static void give_back(WriteSet& set) noexcept {
        set.is_taken.store(false, std::memory_order_release);
    }

private:
    static constexpr size_t kSets = 16;

    std::array<WriteSet, kSets> sets_;
};

}  // namespace hanare::pager
