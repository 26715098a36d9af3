// SPDX-License-Identifier: Apache-2.0
//
// PartWrites: what leaves of a sparse block lies in several places of it.  Their writes are started
// together, and waited for together: a device takes about as long for all as for one.
//
// Any thread, fault handlers included.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "hanare/status.h"
#include "pager/fault/spinning.hpp"
#include "store/store.hpp"

namespace hanare::pager {

class PartWrites {
public:
    PartWrites(store::Store& store, bool may_spin);

    // In the child of a fork: the system's means are the parent's.
    void abandon_in_child() noexcept {
        for (Set& set : sets_) static_cast<void>(set.transfers.release());
    }

private:
    static constexpr size_t kSets = 4;

    struct Set {
        std::unique_ptr<store::SharedTransfers> transfers;  // null where the store has none
        std::array<store::IoRequest, store::SharedTransfers::kStartMax> requests;
        std::atomic<bool> is_taken{false};
    };

public:
    // Gathers writes and makes them; held until it goes out of scope.
    class Batch {
    public:
        // Where all are taken, each write is made alone: nobody waits for others.
        explicit Batch(PartWrites& owner) noexcept;
        ~Batch() {
            if (set_ != nullptr) set_->is_taken.store(false, std::memory_order_release);
        }
        Batch(const Batch&) = delete;
        Batch& operator=(const Batch&) = delete;

        // The status of what it had to write to make room.
        hanare_status add(const store::IoRequest& write) noexcept;
        // Returns when all that was added is written, or has failed: then a status of one of these.
        hanare_status finish() noexcept;

    private:
        hanare_status write_alone(const store::IoRequest& write) noexcept {
            return owner_.store_.write(write.offset, write.memory, write.bytes);
        }

        PartWrites& owner_;
        Set* set_ = nullptr;
        size_t count_ = 0;
    };

private:
    store::Store& store_;
    Spinning spinning_;
    std::array<Set, kSets> sets_;
};

}  // namespace hanare::pager
