// SPDX-License-Identifier: Apache-2.0
//
// The state of one block: a single atomic word, so that every transition is one compare-and-swap.
// docs/block-states.md has the diagram; tests/model/block.pml checks it.
//
// A block is present as a whole, or sparse: only parts of it that were touched are present, each
// fetched alone.  Which ones, is known to the block's frame (Frame::present).
//
// Transient states (kFilling, kReading, kInstalling, kUpgrading, kExtending, kWithdrawing,
// kWriting, kStoring) have exactly one owner: the thread whose compare-and-swap entered them; of
// kReading and kStoring, once the transfer is started, who completes it.  Only the owner may leave
// them, and only the owner may touch the block's frame meanwhile.  All other threads wait on the
// word (a futex).
#pragma once

#include <atomic>
#include <cstdint>

namespace hanare::pager {

struct Frame;

enum class BlockState : uint32_t {
    kAbsent = 0,   // no frame; content in the store, or zeros if kStored is not set
    kFilling,      // transient: a frame is being found and filled from the store
    kStaged,       // content in a frame that is not mapped; kDirty if the store lacks it
    kInstalling,   // transient: the frame is being mapped
    kReadOnly,     // mapped, write-protected, equal to the store (or zeros never stored)
    kUpgrading,    // transient: write protection is being removed
    kWritable,     // mapped, writable, taken to be dirty
    kWithdrawing,  // transient: being unmapped into its frame
    kWriting,      // transient: unmapped or protected, being written to the store
    kSparse,       // parts of it are mapped, the clean ones write-protected
    kExtending,    // transient: a part of an absent or sparse block, or all of it, is being added
    kReading,      // transient: being read ahead; whoever waits completes it (fault_transfers.hpp)
    kStoring,      // transient: as kWriting, and whoever waits completes it
};

// Layout of the word: state, flags, number of pins.
namespace block_word {
inline constexpr uint32_t kStateMask = 0xf;
inline constexpr uint32_t kStored =
    1u << 4;  // the store holds content of the block, or of parts of it
inline constexpr uint32_t kDirty = 1u << 5;         // the frame differs from the store
inline constexpr uint32_t kWaiters = 1u << 6;       // a thread sleeps on the word
inline constexpr uint32_t kSecondChance = 1u << 7;  // withdrawn by replacement, not yet reused
// Most of its parts came back from the shelf in one turn there (decision 21).
inline constexpr uint32_t kDense = 1u << 8;
inline constexpr uint32_t kPinUnit = 1u << 9;
inline constexpr uint32_t kPinMask = ~(kPinUnit - 1);

constexpr BlockState state(uint32_t word) { return static_cast<BlockState>(word & kStateMask); }
constexpr uint32_t with_state(uint32_t word, BlockState state) {
    return (word & ~kStateMask) | static_cast<uint32_t>(state);
}
constexpr bool pinned(uint32_t word) { return (word & kPinMask) != 0; }
// As a whole.
constexpr bool resident(uint32_t word) {
    return state(word) == BlockState::kReadOnly || state(word) == BlockState::kWritable;
}
constexpr bool transient(uint32_t word) {
    switch (state(word)) {
        case BlockState::kAbsent:
        case BlockState::kStaged:
        case BlockState::kReadOnly:
        case BlockState::kWritable:
        case BlockState::kSparse: return false;
        default: return true;
    }
}
}  // namespace block_word

// Zero-filled memory is a valid array of absent, never written blocks.
struct Block {
    std::atomic<uint32_t> word;
    // Index in the region's frame class, or with kSparseFrame in that of sparse frames; valid
    // unless absent.  Written by the owner only; others may read it as a hint.
    std::atomic<uint32_t> frame;
    uint64_t stored_parts;  // one bit per part whose content the store holds; the owner's

    static constexpr uint32_t kSparseFrame = 1u << 31;

    uint32_t load() const noexcept { return word.load(std::memory_order_acquire); }

    // Enters `target` if the word is still `seen`.
    bool try_enter(uint32_t seen, BlockState target) noexcept {
        return word.compare_exchange_strong(seen, block_word::with_state(seen, target),
                                            std::memory_order_acq_rel);
    }

    // The owner goes on to another transient state; whoever waits goes on waiting.
    void advance(BlockState target) noexcept;

    // The owner leaves a transient state, sets and clears flags, and wakes whoever waits.
    void leave(BlockState target, uint32_t set = 0, uint32_t clear = 0) noexcept;

    // Sleeps until the word is no longer `seen`; spins first.
    void wait(uint32_t seen) noexcept;
};

static_assert(sizeof(Block) == 16);

}  // namespace hanare::pager
