// SPDX-License-Identifier: Apache-2.0
//
// WriteBackDepth: how many bytes of write-backs are in flight at most.  Reads queue behind writes
// in the device, so write-backs leave room for them; where nothing is read, the device works better
// on more at a time (decision 16).
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

    void note_written(uint64_t bytes) noexcept { written_since_read_ += bytes; }

    // `reads_begun`: a counter of the reads from the store.
    void note_reads(uint32_t reads_begun) noexcept {
        if (reads_begun != reads_begun_) written_since_read_ = 0;
        reads_begun_ = reads_begun;
    }

    bool is_alone() const noexcept { return written_since_read_ >= kAloneBytes; }

    // `low_bytes`: what is kept free or clean.
    uint64_t bytes_max(uint64_t low_bytes) const noexcept {
        return is_alone() ? kAloneShare * low_bytes : std::min(2 * low_bytes, kBesideReadsBytesMax);
    }

private:
    uint32_t reads_begun_ = 0;
    uint64_t written_since_read_ = 0;
};

}  // namespace hanare::pager
