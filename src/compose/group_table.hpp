// SPDX-License-Identifier: Apache-2.0
//
// GroupTable: where the chunks of each group lie, and who works on them.  A group's gate is entered
// by transfers, many at a time, and closed by who moves its chunks.
//
// Any thread, async-signal-safe, nothing allocates, but for make() and the end.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/result.hpp"
#include "sys/memory.hpp"

namespace hanare::compose {

// A chunk of a member; 4 MiB from `offset` on.
struct Place {
    uint32_t member = 0;
    uint64_t offset = 0;
};

class Group {
public:
    bool try_enter() noexcept;
    void enter() noexcept;  // waits while it is closed
    void leave() noexcept;
    // Alone in it from now on, or false: others have stayed for so long.  By one thread at a time
    // for each group; another one's close() fails at once.
    bool close(int timeout_ms) noexcept;
    void open() noexcept;

    // By who has entered or closed it; set and clear by who has closed it.
    std::optional<Place> place(uint32_t role) const noexcept;
    void set_place(uint32_t role, Place place) noexcept;
    void clear_place(uint32_t role) noexcept;
    // By anybody, where there is none yet and somebody else may be about to do the same.
    void offer_place(uint32_t role, Place place) noexcept;

    // Whether it was ever written to; until then its chunks are as their members gave them.
    bool is_written() const noexcept { return written_.load(std::memory_order_acquire) != 0; }
    void note_written() noexcept {
        if (!is_written()) written_.store(1, std::memory_order_release);
    }
    void forget_written() noexcept { written_.store(0, std::memory_order_release); }

private:
    static constexpr uint32_t kClosed = uint32_t{1} << 31;

    std::atomic<uint64_t>& word(uint32_t role) const noexcept;

    std::atomic<uint32_t> gate_;  // kClosed, and how many have entered
    std::atomic<uint32_t> written_;
    // Behind it, the places.
};

class GroupTable {
public:
    // For addresses up to 8 TiB or as much as the address space has room for.
    enum class For { kProcess, kChildrenToo };
    static Result<GroupTable> make(uint32_t roles, uint64_t group_bytes, For whom);

    uint64_t groups() const noexcept { return groups_; }
    Group& group(uint64_t number) const noexcept;

private:
    GroupTable(sys::Mapping memory, size_t stride, uint64_t groups) noexcept
        : memory_(std::move(memory)), stride_(stride), groups_(groups) {}

    sys::Mapping memory_;
    size_t stride_;
    uint64_t groups_;
};

}  // namespace hanare::compose
