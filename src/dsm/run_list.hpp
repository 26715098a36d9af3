// SPDX-License-Identifier: Apache-2.0
//
// RunList: runs of blocks, as notices have them, in memory that is reserved once: adding to it
// neither allocates nor fails.  Where they are too many the list is one run of all blocks: a notice
// too many costs a fetch, one too few is an error.
//
// No lock; whoever has the list has one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "base/result.hpp"
#include "sys/sparse_memory.hpp"

namespace hanare::dsm {

// Blocks [first, first + count).
struct Run {
    uint32_t first = 0;
    uint32_t count = 0;

    friend bool operator==(const Run&, const Run&) = default;
};

inline constexpr Run kAllBlocks = {0, UINT32_MAX};

class RunList {
public:
    static Result<RunList> make(uint32_t runs_max) {
        HANARE_TRY_ASSIGN(auto memory, sys::SparseMemory::reserve(runs_max * sizeof(Run)));
        return RunList(std::move(memory), runs_max);
    }

    std::span<const Run> runs() const noexcept { return {items(), count_}; }
    void clear() noexcept { count_ = 0; }

    void add(Run run) noexcept {
        // Whoever says so may say anything.
        run.count = std::min(run.count, UINT32_MAX - run.first);
        if (run.count == 0) return;
        if (count_ > 0 && items()[count_ - 1].first + items()[count_ - 1].count == run.first &&
            run.count <= UINT32_MAX - run.first) {
            items()[count_ - 1].count += run.count;
            return;
        }
        if (count_ == runs_max_) make_disjoint();
        if (count_ == runs_max_) {
            count_ = 0;
            run = kAllBlocks;
        }
        items()[count_++] = run;
    }

    // Sorted, without gaps or overlaps between neighbours that could be one.
    void make_disjoint() noexcept {
        const std::span<Run> all(items(), count_);
        std::ranges::sort(all, {}, &Run::first);
        uint32_t kept = 0;
        for (const Run& run : all) {
            if (kept > 0 && run.first <= all[kept - 1].first + all[kept - 1].count) {
                Run& last = all[kept - 1];
                last.count = std::max(last.first + last.count, run.first + run.count) - last.first;
            } else {
                all[kept++] = run;
            }
        }
        count_ = kept;
    }

    // Of a list that is disjoint.
    bool contains(uint32_t block) const noexcept {
        const auto all = runs();
        const auto behind = std::ranges::upper_bound(all, block, {}, &Run::first);
        return behind != all.begin() && block - (behind - 1)->first < (behind - 1)->count;
    }

private:
    RunList(sys::SparseMemory memory, uint32_t runs_max) noexcept
        : memory_(std::move(memory)), runs_max_(runs_max) {}
    Run* items() const noexcept { return reinterpret_cast<Run*>(memory_.address()); }

    sys::SparseMemory memory_;
    uint32_t runs_max_;
    uint32_t count_ = 0;
};

}  // namespace hanare::dsm
