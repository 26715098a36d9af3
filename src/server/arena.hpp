// SPDX-License-Identifier: Apache-2.0
//
// Arena: the memory that a server lends out.  What comes back is wiped before anybody else gets it.
// A thread of the caller's does that, and touches what was never used, so that it is known to be
// there and nobody waits for it later.
//
// Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "base/thread_annotations.hpp"
#include "store/extents.hpp"
#include "sys/lock.hpp"
#include "sys/memory.hpp"

namespace hanare::server {

class Arena {
public:
    struct Settings {
        uint64_t bytes = 0;             // rounded down to 4 MiB
        bool wants_huge_pages = false;  // where the kernel gives them
    };
    // INVALID_ARGUMENT: less than 4 MiB; NO_MEMORY.
    static Result<std::unique_ptr<Arena>> open(const Settings& settings);
    ~Arena() = default;
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    // `bytes` is a positive multiple of 4 MiB; in one piece, of zeros.  nullopt: there is none.
    std::optional<std::span<std::byte>> allocate(uint64_t bytes);
    // As it was allocated, by one who makes sure that nobody touches it any more.
    void give_back(std::span<std::byte> piece) noexcept;
    // The same of one that nobody has touched: it is free at once.
    void give_back_untouched(std::span<std::byte> piece) noexcept;

    // At one moment.
    struct Room {
        uint64_t free_bytes = 0;     // what allocate() could give, in pieces
        uint64_t largest_bytes = 0;  // in one piece
        uint64_t unwiped_bytes = 0;  // given back, free soon
    };
    Room room() const noexcept;
    uint64_t total_bytes() const noexcept { return memory_.bytes(); }
    uint64_t free_bytes() const noexcept { return room().free_bytes; }
    uint64_t largest_bytes() const noexcept { return room().largest_bytes; }
    uint64_t unwiped_bytes() const noexcept { return room().unwiped_bytes; }
    // Known to be there.
    uint64_t touched_bytes() const noexcept { return touched_bytes_.load(); }

    // Wipes and touches until stop(); by one thread.
    void run() noexcept;
    void stop() noexcept;

private:
    static constexpr uint64_t kStepBytes = store::ExtentAllocator::kAlignmentBytes;

    explicit Arena(sys::Mapping memory);

    uint64_t offset_of(std::span<const std::byte> piece) const noexcept;
    void tell() noexcept;
    bool wipe_one() noexcept;
    void wipe(std::span<std::byte> piece) noexcept;
    bool touch_some() noexcept;
    bool may_touch() noexcept;
    void stop_touching(const char* why) noexcept;

    const sys::Mapping memory_;

    mutable sys::RankedLock lock_{sys::LockRank::kLeaf};
    store::ExtentAllocator extents_ HANARE_GUARDED_BY(lock_);
    uint64_t free_bytes_ HANARE_GUARDED_BY(lock_);
    uint64_t unwiped_bytes_ HANARE_GUARDED_BY(lock_) = 0;
    // Has room for all pieces that are out: giving back allocates nothing.
    std::vector<std::span<std::byte>> unwiped_ HANARE_GUARDED_BY(lock_);
    size_t pieces_out_ HANARE_GUARDED_BY(lock_) = 0;

    std::atomic<uint32_t> news_{0};  // changes when there is something to do
    std::atomic<bool> is_ending_{false};
    std::atomic<uint64_t> touched_bytes_{0};

    // Of the thread that runs.
    std::vector<bool> is_touched_;  // by step
    size_t next_step_ = 0;          // all below it are
    bool touches_ = true;
    uint64_t touched_bytes_max_ = 0;  // 0: not known yet
};

}  // namespace hanare::server
