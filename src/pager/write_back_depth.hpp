// SPDX-License-Identifier: Apache-2.0
//
// WriteBackDepth: how many bytes of write-backs are in flight at most, and when they begin ahead of
// need.  Reads queue behind writes in the device, so write-backs leave room for them; where nothing
// is read, the device works better on more at a time, and from early on (decisions 16 and 17).
//
// Threads: the keeper's own.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.hpp"

namespace hanare::pager {

class WriteBackDepth {
public:
    static constexpr uint64_t kBesideReadsBytesMax = 4 * kMiB;
    // Written without a read in between, after which none is expected.
    static constexpr uint64_t kAloneBytes = 16 * kMiB;
    // In flight then, in multiples of what is kept free or clean.
    static constexpr uint64_t kAloneShare = 4;
    // One part of the frames may be in use before anything is written ahead of need.
    static constexpr uint64_t kInUseShare = 4;

    void note_written(uint64_t bytes) noexcept {
        written_since_read_ += bytes;
        note_clean(bytes);
    }
    // What has left the address space without a write.
    void note_clean(uint64_t bytes) noexcept { begun_bytes_ -= std::min(begun_bytes_, bytes); }

    // Two counters: of the reads from the store, and of the bytes of blocks that the program has
    // begun to write for the first time.  `frame_bytes`: no more can be left to write.
    void note_program(uint32_t reads_begun, uint64_t begun_counter, uint64_t frame_bytes) noexcept {
        begun_bytes_ = std::min(begun_bytes_ + begun_counter - begun_counter_, frame_bytes);
        begun_counter_ = begun_counter;
        if (reads_begun != reads_begun_) written_since_read_ = begun_bytes_ = 0;
        reads_begun_ = reads_begun;
    }

    // Whether to write what is not in need yet: as many bytes as were begun since the last read, so
    // that each is written once on this account.
    bool is_ahead_of_need(uint64_t frame_bytes, uint64_t available_bytes) const noexcept {
        return begun_bytes_ > 0 && available_bytes < frame_bytes - frame_bytes / kInUseShare;
    }

    bool is_alone() const noexcept { return written_since_read_ >= kAloneBytes; }

    // `low_bytes`: what is kept free or clean.
    uint64_t bytes_max(uint64_t low_bytes) const noexcept {
        return is_alone() ? kAloneShare * low_bytes : std::min(2 * low_bytes, kBesideReadsBytesMax);
    }

private:
    uint32_t reads_begun_ = 0;
    uint64_t written_since_read_ = 0;
    uint64_t begun_counter_ = 0;
    uint64_t begun_bytes_ = 0;  // since the last read, and not written since
};

}  // namespace hanare::pager
