// SPDX-License-Identifier: Apache-2.0
//
// ReadAheadDepth: chooses by measurement how many bytes streams are read ahead.  What it measures
// is the time that threads waited for blocks still being read, per byte consumed.
//
// Depths are the start value doubled or halved; the kept one is compared with a rival next to it.
// One rule decides in all directions: of two depths the one farther from the start has to save a
// tenth of the program's time by less waiting, else the nearer one is as good
// (read_ahead_depth.cpp says what follows).
//
// What streams have in flight is what everything else waits behind: while random faults or
// write-backs use the device as well, all depths are smaller, in the proportion of
// start_beside_others to start.
//
// Any thread, fault handlers too; a contended window ends a little later and loses nothing.  As for
// every RankedLock, callers run with all signals blocked.
#pragma once

#include <atomic>
#include <cstdint>

#include "sys/lock.hpp"

namespace hanare::pager {

class ReadAheadDepth {
public:
    struct Range {
        uint64_t start_bytes;
        uint64_t start_beside_others_bytes;
        uint64_t least_bytes;
        uint64_t most_bytes;
    };

    // 1 <= least <= start_beside_others <= start <= most < 2^32.
    explicit ReadAheadDepth(const Range& range) noexcept;

    uint64_t bytes() const noexcept;

    // Streams went on by `bytes_consumed`, for which threads waited `stalled_ns` in all.
    void note(uint64_t bytes_consumed, uint64_t stalled_ns, uint64_t now_ns) noexcept;
    // A random fault or a write-back.
    void note_other_use() noexcept;

private:
    // What streams go on by before other use is forgotten.
    static constexpr uint64_t kOtherUseLastsBytes = uint64_t{16} << 20;

    // Per byte consumed.
    struct Window {
        double stalled = 0;
        double running = 0;  // or pausing
    };

    // What part of its time a program saved from one window to another.
    static double saved(const Window& from, const Window& to) noexcept;
    // A depth is the start value times two to the power of its level.
    uint64_t bytes_at(int level) const noexcept;
    bool allows(int level) const noexcept;

    void end_window(uint64_t now_ns) noexcept HANARE_REQUIRES(lock_);
    void consider_trial(const Window& window) noexcept HANARE_REQUIRES(lock_);
    void go_on_with_trial(const Window& window) noexcept HANARE_REQUIRES(lock_);
    void apply(int level) noexcept HANARE_REQUIRES(lock_);

    const Range range_;
    std::atomic<uint64_t> bytes_;
    std::atomic<uint64_t> window_bytes_;
    std::atomic<uint64_t> consumed_bytes_ = 0;  // in this window, as is
    std::atomic<uint64_t> stalled_ns_ = 0;
    std::atomic<uint64_t> streamed_bytes_ = 0;
    std::atomic<uint64_t> other_use_until_bytes_ = 0;

    sys::RankedLock lock_{sys::LockRank::kStreams};
    uint64_t window_began_ns_ HANARE_GUARDED_BY(lock_) = 0;
    bool filling_ HANARE_GUARDED_BY(lock_) = false;  // a new depth takes effect: not measured
    Window last_ HANARE_GUARDED_BY(lock_);           // the one measured before this one
    int kept_ HANARE_GUARDED_BY(lock_) = 0;          // levels
    int rival_ HANARE_GUARDED_BY(lock_) = 0;         // the kept one when there is no trial
    int applied_ HANARE_GUARDED_BY(lock_) = 0;       // one of them
    double score_ HANARE_GUARDED_BY(lock_) = 0;      // of the rival
    bool deeper_next_ HANARE_GUARDED_BY(lock_) = true;
    uint32_t waited_windows_ HANARE_GUARDED_BY(lock_) = 0;  // since the last trial
    uint32_t wait_windows_ HANARE_GUARDED_BY(lock_);
};

}  // namespace hanare::pager
