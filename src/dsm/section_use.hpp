// SPDX-License-Identifier: Apache-2.0
//
// SectionUse: which blocks the critical sections of a lock need, so that they are fetched when the
// lock comes from another task, all at once, before they are missed: migratory data (Bennett,
// Carter, Zwaenepoel 1990).  A block is needed that was missed in two sections in a row.  Now and
// then nothing is fetched, to see what is still needed: the more seldom the longer nothing else
// was.
//
// RecentMisses: what was missed lately, by whichever thread.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hanare::dsm {

struct Miss {
    uint32_t block;
    bool came_along;  // with a neighbour that was missed: nobody knows whether it is needed
};

class RecentMisses {
public:
    static constexpr uint32_t kKept = 256;

    // Any thread; async-signal-safe.
    void add(Miss miss) noexcept {
        const uint64_t number = count_.fetch_add(1, std::memory_order_relaxed);
        const uint64_t word = uint64_t{miss.block} << 1 | (miss.came_along ? 1 : 0);
        misses_[number % kKept].store(word, std::memory_order_relaxed);
    }
    uint64_t count() const noexcept { return count_.load(std::memory_order_relaxed); }
    // The first of those since then; how many there are.  A hint: others may add meanwhile.
    size_t since(uint64_t begin, std::span<Miss> misses) const noexcept {
        const uint64_t most = std::min(misses.size(), size_t{kKept});
        const uint64_t more = std::min(count() - begin, most);
        for (uint64_t i = 0; i < more; ++i) {
            const uint64_t word = misses_[(begin + i) % kKept].load(std::memory_order_relaxed);
            misses[i] = {.block = static_cast<uint32_t>(word >> 1), .came_along = (word & 1) != 0};
        }
        return more;
    }

private:
    std::atomic<uint64_t> count_{0};
    std::array<std::atomic<uint64_t>, kKept> misses_ = {};
};

// By who has the lock.
class SectionUse {
public:
    static constexpr uint32_t kBlocksMax = 64;
    static constexpr uint32_t kPauseMin = 8;
    static constexpr uint32_t kPauseMax = 256;

    // The lock has come from another task: what is to be fetched now, in order; until the next call
    // of either.
    std::span<const uint32_t> begin() noexcept;
    // That section is over, and has missed these itself.
    void end(std::span<const Miss> missed) noexcept;

private:
    static constexpr uint8_t kOnce = 1;
    static constexpr uint8_t kNeeded = 2;
    struct Use {
        uint32_t block;
        uint8_t times;   // kOnce or kNeeded
        bool is_missed;  // in this section; or it came along
    };
    void note(Miss miss) noexcept;

    std::array<Use, kBlocksMax> uses_;
    std::array<uint32_t, kBlocksMax> wanted_;
    uint32_t count_ = 0;
    bool looks_ = false;  // nothing was fetched for this section, to see what it misses
    uint32_t sections_ = 0;
    uint32_t pause_ = kPauseMin;
};

}  // namespace hanare::dsm
