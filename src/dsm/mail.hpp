// SPDX-License-Identifier: Apache-2.0
//
// Mail: memory of a task that the others write to: diffs too long for a question, and messages of
// barriers, with words that wake it; and that they read: snapshots of blocks.  Who writes where is
// fixed, so that nobody overwrites what has not been read: a barrier's message of a round lies in
// one of two places in turns, and so do updates: blocks that come with a barrier.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/result.hpp"
#include "dsm/segment.hpp"
#include "sys/sparse_memory.hpp"

namespace hanare::dsm {

inline constexpr size_t kMailDiffBytes = 256 * 1024;
inline constexpr size_t kMailBarrierBytes = 64 * 1024;
inline constexpr uint32_t kSnapshotBlocksMax = 256;
// An update: UpdateHead, what the home knew of each task's notices (positions, 8 bytes each), and
// `count` times the number of a block (4 bytes) and what it held after that.
struct UpdateHead {
    uint32_t barrier = 0;
    uint32_t count = 0;
};
inline constexpr uint32_t kUpdateBlocksMax = 64;
inline constexpr size_t kUpdateItemBytes = sizeof(uint32_t) + kBlockBytes;
constexpr size_t update_bytes(uint32_t tasks, uint32_t blocks) noexcept {
    return sizeof(UpdateHead) + tasks * sizeof(uint64_t) + blocks * kUpdateItemBytes;
}
constexpr size_t update_bytes_max(uint32_t tasks) noexcept {
    return update_bytes(tasks, kUpdateBlocksMax);
}
inline constexpr uint32_t kRoundsMax = 16;  // of a barrier of the largest job

// Of the task `from`, in anybody's mail: what it sends, and what is made for it to be read.
constexpr uint64_t mail_diff_offset(uint32_t from) noexcept { return from * kMailDiffBytes; }
constexpr uint64_t mail_snapshot_offset(uint32_t tasks, uint32_t from) noexcept {
    return tasks * kMailDiffBytes + from * uint64_t{kSnapshotBlocksMax} * kBlockBytes;
}

class Mail {
public:
    static Result<Mail> make(uint32_t tasks) {
        HANARE_TRY_ASSIGN(auto memory, sys::SparseMemory::reserve(bytes_for(tasks)));
        return Mail(tasks, std::move(memory));
    }

    static constexpr uint64_t barrier_offset(uint32_t tasks, uint32_t turn,
                                             uint32_t round) noexcept {
        return mail_snapshot_offset(tasks, tasks) +
               (turn % 2 * kRoundsMax + round) * kMailBarrierBytes;
    }
    // Counts the messages of that round.
    static constexpr uint64_t word_offset(uint32_t tasks, uint32_t round) noexcept {
        return barrier_offset(tasks, 0, 2 * kRoundsMax) + round * kWordBytes;
    }

    std::byte* diffs_of(uint32_t from) const noexcept {
        return memory_.address() + mail_diff_offset(from);
    }
    std::byte* snapshot_for(uint32_t from) const noexcept {
        return memory_.address() + mail_snapshot_offset(tasks_, from);
    }
    std::byte* barrier(uint32_t turn, uint32_t round) const noexcept {
        return memory_.address() + barrier_offset(tasks_, turn, round);
    }
    std::atomic<uint32_t>& word(uint32_t round) const noexcept {
        return *reinterpret_cast<std::atomic<uint32_t>*>(memory_.address() +
                                                         word_offset(tasks_, round));
    }
    static constexpr uint64_t update_offset(uint32_t tasks, uint32_t from, uint32_t turn) noexcept {
        return word_offset(tasks, kRoundsMax) +
               (uint64_t{from} * 2 + turn % 2) * update_bytes_max(tasks);
    }
    const std::byte* update_from(uint32_t from, uint32_t turn) const noexcept {
        return memory_.address() + update_offset(tasks_, from, turn);
    }
    std::span<std::byte> memory() const noexcept { return {memory_.address(), memory_.bytes()}; }

private:
    static constexpr size_t kWordBytes = 64;

    Mail(uint32_t tasks, sys::SparseMemory memory) noexcept
        : tasks_(tasks), memory_(std::move(memory)) {}
    static constexpr size_t bytes_for(uint32_t tasks) noexcept {
        return update_offset(tasks, tasks, 0);
    }

    uint32_t tasks_;
    sys::SparseMemory memory_;
};

}  // namespace hanare::dsm
