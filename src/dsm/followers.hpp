// SPDX-License-Identifier: Apache-2.0
//
// Followers: which tasks fetch which steady blocks of this home after each barrier, so that what
// has changed comes to them with the barrier (home_updates.cpp): producer and consumer data
// (Bennett, Carter, Zwaenepoel 1990).  Who has fetched a block so twice follows it, until it has
// come some times: then who needs it still fetches it again, and it comes twice as often.
//
// There are 128 times four places, by block: who finds none fetches.  Not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace hanare::dsm {

class Followers {
public:
    static constexpr uint32_t kNobody = UINT32_MAX;

    // `task` has fetched the block after a barrier.
    void note_fetch(uint32_t block, uint32_t task) noexcept {
        const auto bucket = bucket_of(block);
        auto place = std::ranges::find_if(
            bucket, [&](const Follower& one) { return one.block == block && one.task == task; });
        if (place == bucket.end()) {
            // Who does not follow makes room, but not at once.
            place = std::ranges::min_element(bucket, {}, &Follower::weight);
            if (place->updates != 0) return;
            if (place->fetches != 0) {
                --place->fetches;
                return;
            }
            *place = {.block = block, .task = task};
        }
        if (place->fetches < kFetchesMin) ++place->fetches;
        if (place->fetches < kFetchesMin || place->updates != 0) return;
        place->updates = place->most;
        place->most = std::min(2 * place->most, kUpdatesMax);
        ++count_;
    }
    // Nobody follows it any more.
    void forget(uint32_t block) noexcept {
        for (Follower& one : bucket_of(block)) {
            if (one.block != block) continue;
            if (one.updates != 0) --count_;
            one = {};
        }
    }
    // The block has changed since the last barrier.
    void note_change(uint32_t block) noexcept {
        for (Follower& one : bucket_of(block)) one.is_changed |= one.block == block;
    }

    // The first task from that one on that follows a block that has changed; or kNobody.
    uint32_t next_task(uint32_t from) const noexcept {
        uint32_t next = kNobody;
        if (count_ == 0) return next;
        for (const Follower& one : all_) {
            if (one.is_due() && one.task >= from) next = std::min(next, one.task);
        }
        return next;
    }
    // give(block) for each that the task follows and that has changed, until it returns false.
    template <typename Give>
    void give_to(uint32_t task, const Give& give) noexcept {
        for (Follower& one : all_) {
            if (!one.is_due() || one.task != task) continue;
            if (!give(one.block)) return;
            one.is_changed = false;
            if (--one.updates == 0) --count_;
        }
    }

private:
    static constexpr uint32_t kWays = 4;
    static constexpr uint32_t kBuckets = 128;
    static constexpr int kFetchesMin = 2;
    static constexpr int kUpdatesMin = 16;
    static constexpr int kUpdatesMax = 128;

    struct Follower {
        uint32_t block = kNobody;
        uint32_t task = 0;
        int fetches = 0;
        int updates = 0;  // that are still to come; 0: it does not follow
        int most = kUpdatesMin;
        bool is_changed = false;

        bool is_due() const noexcept { return updates != 0 && is_changed; }
        int weight() const noexcept { return updates * (kFetchesMin + 1) + fetches; }
    };
    std::span<Follower> bucket_of(uint32_t block) noexcept {
        // Fibonacci hashing: borders of grids are powers of two apart.
        const uint32_t hash = block * 0x9e3779b1u >> 25;
        static_assert(kBuckets == 1u << (32 - 25));
        return std::span(all_).subspan(size_t{hash} * kWays, kWays);
    }

    std::array<Follower, kBuckets * kWays> all_;
    uint32_t count_ = 0;  // that follow
};

}  // namespace hanare::dsm
