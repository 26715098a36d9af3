// SPDX-License-Identifier: Apache-2.0
//
// FarMemory: which addresses are far memory, as a system call needs to know it.  Ranges are looked
// up without a lock and without being counted, because a program may leave its system calls by
// longjmp; they are changed by one thread at a time.  Any thread, async-signal-safe; compiled for
// general registers where system calls are, so what is called there is inlined or virtual; and a
// cancelled thread unwinds through it, so it is not noexcept unless it calls nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hook/system_calls.hpp"

namespace hanare::pager {
struct Region;
}

namespace hanare::intercept {

class FarMemory {
public:
    FarMemory() = default;
    FarMemory(const FarMemory&) = delete;
    FarMemory& operator=(const FarMemory&) = delete;

    struct Bounds {
        std::atomic<uintptr_t> begin{0};
        std::atomic<size_t> bytes{0};  // 0: none
    };

    // Whether an address may be of far memory; nothing but comparisons.
    [[gnu::always_inline]] bool contains(uintptr_t address) const {
        return any_range(
            [address](uintptr_t begin, size_t bytes) { return address - begin < bytes; });
    }
    // The same of [begin, end).
    [[gnu::always_inline]] bool overlaps(uintptr_t begin, uintptr_t end) const {
        return any_range([begin, end](uintptr_t from, size_t bytes) {
            return bytes != 0 && begin < from + bytes && from < end;
        });
    }
    // Calls visit(index, from, to) for the part of [begin, end) in each range.
    template <typename Visit>
    [[gnu::always_inline]] void for_each_part(uintptr_t begin, uintptr_t end, Visit visit) const {
        size_t index = 0;
        any_range([&](uintptr_t from, size_t bytes) {
            const uintptr_t first = begin > from ? begin : from;
            const uintptr_t last = end < from + bytes ? end : from + bytes;
            if (bytes != 0 && first < last) visit(index, first, last);
            ++index;
            return false;
        });
    }

    // Whether the program may access what of the range is far memory.
    virtual bool may_access(uintptr_t address, size_t bytes) const = 0;
    // The region of a range, if that lasts as long as the process; else nullptr.
    virtual pager::Region* lasting_region(size_t index) const noexcept = 0;

    // Two threads at a time may count as one: that is no reason to make either wait.
    void count_protected_call() noexcept {
        const uint64_t before = protected_calls_.load(std::memory_order_relaxed);
        protected_calls_.store(before + 1, std::memory_order_relaxed);
    }
    uint64_t protected_calls() const noexcept {
        return protected_calls_.load(std::memory_order_relaxed);
    }

protected:
    ~FarMemory() = default;  // lasts as long as the process

    static constexpr size_t kRangesPerChunk = 8;
    struct Chunk {
        Bounds ranges[kRangesPerChunk];
        std::atomic<Chunk*> next{nullptr};
    };

    // Of the first chunk.  `front`: nothing of the program's that begins before reaches into it.
    void set_range(size_t index, uintptr_t begin, size_t bytes, uintptr_t front) noexcept {
        set_range(first_.ranges[index], begin, bytes, front);
        note_used(index + 1);
    }
    static void set_range(Bounds& range, uintptr_t begin, size_t bytes, uintptr_t front) noexcept {
        hook::note_handlers_memory(front, begin + bytes);
        range.bytes.store(0, std::memory_order_release);
        range.begin.store(begin, std::memory_order_release);
        range.bytes.store(bytes, std::memory_order_release);
    }
    // So many ranges, counted through the chunks, have been in use.
    void note_used(size_t count) noexcept {
        if (count > used_.load(std::memory_order_relaxed)) {
            used_.store(count, std::memory_order_release);
        }
    }

    Chunk first_;
    std::atomic<size_t> used_{0};

private:
    template <typename Test>
    [[gnu::always_inline]] bool any_range(Test test) const {
        size_t left = used_.load(std::memory_order_acquire);
        for (const Chunk* chunk = &first_; left > 0;
             chunk = chunk->next.load(std::memory_order_acquire)) {
            for (size_t i = 0; i < kRangesPerChunk && left > 0; ++i, --left) {
                const uintptr_t begin = chunk->ranges[i].begin.load(std::memory_order_relaxed);
                if (test(begin, chunk->ranges[i].bytes.load(std::memory_order_relaxed))) {
                    return true;
                }
            }
        }
        return false;
    }

    std::atomic<uint64_t> protected_calls_{0};
};

}  // namespace hanare::intercept
