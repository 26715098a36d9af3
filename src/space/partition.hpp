// SPDX-License-Identifier: Apache-2.0
//
// The memory of one task: what it maps goes here, wherever the kernel would have put it, so that
// one call gives all of it back when the task has ended.  Answers mmap, munmap and mremap in their
// place: results as of the system calls, no libc, no vector registers.  Any thread of the task.
#pragma once

#include <cstdint>
#include <span>

#include "space/free_place.hpp"
#include "space/turn_lock.hpp"
#include "space/used_ranges.hpp"

namespace hanare::space {

class Partition {
public:
    // Empty.  `room` is for the ranges that can be in use.
    void begin(std::span<Range> room, Range whole) noexcept { used_.begin(room, whole); }

    // For a task that begins: mappings lie behind that many bytes as long as there is room.  Tasks
    // of one program would otherwise have the same addresses but for their high bits, which
    // processors take for the same where they look at the low ones only.
    void begin_task(uint64_t offset) noexcept { start_ = whole().begin + offset; }

    // Afterwards nothing is here, and nobody has the turn: its task has ended.
    void give_back() noexcept;

    Range whole() const noexcept { return used_.whole(); }
    bool contains(uint64_t address) const noexcept {
        return address >= whole().begin && address < whole().end;
    }

    int64_t map(const Arguments& arguments) noexcept;
    int64_t unmap(const Arguments& arguments) noexcept;
    int64_t remap(const Arguments& arguments) noexcept;

    // Readable and writable pages in [low, high), or a negative errno value.
    int64_t map_between(uint64_t bytes, uint64_t low, uint64_t high) noexcept;

    // Around fork, which copies it as it is.
    TurnLock& turn() noexcept { return turn_; }

private:
    int64_t map_anywhere(const Arguments& arguments, uint64_t bytes) noexcept;
    uint64_t reserve(uint64_t bytes) noexcept;
    int64_t move(const Arguments& arguments, Range from, uint64_t bytes) noexcept;
    void note(uint64_t begin, uint64_t bytes) noexcept { used_.add({begin, begin + bytes}); }
    void forget(uint64_t begin, uint64_t bytes) noexcept { used_.remove({begin, begin + bytes}); }

    TurnLock turn_;
    UsedRanges used_;
    uint64_t start_ = 0;
};

}  // namespace hanare::space
