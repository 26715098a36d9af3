// SPDX-License-Identifier: Apache-2.0
//
// GroupTable: where the chunks of each group lie, and who works on them.  A group's gate is entered
// by transfers, many at a time, and closed by who moves its chunks.  Forked children may share the
// places; gates are of one process, since another may be killed inside.
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

// An entry of the table, which has to outlive it.
class Group {
public:
    Group() = default;  // none: nothing may be asked of it

    uint64_t number() const noexcept { return number_; }

    bool try_enter() const noexcept;
    void enter() const noexcept;  // waits while it is closed
    void leave() const noexcept;
    // Alone in it from now on, or false: others have stayed for so long.  By one thread at a time
    // for each group; another one's close() fails at once.
    bool close(int timeout_ms) const noexcept {
        return begin_to_close() && finish_closing(timeout_ms);
    }
    // The same; calls `meanwhile` at first and every millisecond.
    template <typename Meanwhile>
    bool close(int timeout_ms, Meanwhile meanwhile) const noexcept {
        if (!begin_to_close()) return false;
        for (int passed_ms = 0; passed_ms < timeout_ms; ++passed_ms) {
            meanwhile();
            if (await_alone(1)) return true;
        }
        return finish_closing(0);
    }
    void open() const noexcept;

    // By who has entered or closed it; set and clear by who has closed it.
    std::optional<Place> place(uint32_t role) const noexcept;
    void set_place(uint32_t role, Place place) const noexcept;
    void clear_place(uint32_t role) const noexcept;
    // By anybody, where there is none yet and somebody else may be about to do the same.
    void offer_place(uint32_t role, Place place) const noexcept;

    // Whether it was ever written to; until then its chunks are as their members gave them.
    bool is_written() const noexcept { return words_[0].load(std::memory_order_acquire) != 0; }
    void note_written() const noexcept {
        if (!is_written()) words_[0].store(1, std::memory_order_release);
    }
    void forget_written() const noexcept { words_[0].store(0, std::memory_order_release); }

private:
    friend class GroupTable;
    static constexpr uint32_t kClosed = uint32_t{1} << 31;

    Group(uint64_t number, std::atomic<uint32_t>& gate, std::atomic<uint64_t>* words) noexcept
        : number_(number), gate_(&gate), words_(words) {}
    bool begin_to_close() const noexcept;
    bool await_alone(int timeout_ms) const noexcept;
    bool finish_closing(int timeout_ms) const noexcept;
    std::atomic<uint64_t>& word(uint32_t role) const noexcept { return words_[1 + role]; }

    uint64_t number_ = 0;
    std::atomic<uint32_t>* gate_ = nullptr;   // kClosed, and how many have entered
    std::atomic<uint64_t>* words_ = nullptr;  // whether it was written to, and the places
};

class GroupTable {
public:
    // For addresses up to 8 TiB or as much as the address space has room for.
    enum class For { kProcess, kChildrenToo };
    static Result<GroupTable> make(uint32_t roles, uint64_t group_bytes, For whom);

    uint64_t groups() const noexcept { return groups_; }
    Group group(uint64_t number) const noexcept;

private:
    GroupTable(sys::Mapping gates, sys::Mapping words, size_t words_of_group,
               uint64_t groups) noexcept
        : gates_(std::move(gates)),
          words_(std::move(words)),
          words_of_group_(words_of_group),
          groups_(groups) {}

    sys::Mapping gates_;
    sys::Mapping words_;
    size_t words_of_group_;
    uint64_t groups_;
};

}  // namespace hanare::compose
