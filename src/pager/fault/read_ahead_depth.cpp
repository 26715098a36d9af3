// SPDX-License-Identifier: Apache-2.0
//
// A trial alternates between the two depths, a window each, and adds up what the farther one saved
// from each window to the next: device and program change with time, and so change both sides
// alike. Twice the depth, where that helps most, halves the waiting, and is adopted after four
// comparisons. None counts for more, so that neither noise nor one change of the device decides.
//
// Savings are parts of the time, not of the waiting: the little that a computing program waits for
// a noisy device may well double from one window to the next.
//
// Where depth makes no difference the sum of a farther rival falls by kSavingNeeded per comparison
// and that of a nearer one rises by as much.  To lead away from the start, noise has to outweigh
// this drift by kAdopt, which is the less likely, exponentially, the larger kAdopt is; and the
// drift leads back.  Two levels take two such errors with no return between them.  That is no proof
// for every noise: windows that differ by a fifth at most did not do it in 1000 simulated runs of
// 1000 windows, those with a normal deviation of a fifth were two levels away for 0.2 % of the
// time.
#include "pager/fault/read_ahead_depth.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/assert.hpp"

namespace hanare::pager {

namespace {
constexpr uint64_t kWindowBytesMin = 16u << 20;
constexpr uint64_t kWindowDepths = 4;
constexpr double kSavingNeeded = 0.1;  // parts of the time; waiting for less is good enough
constexpr double kSavingMax = 0.5;     // that one comparison can show
constexpr double kAdopt = 1.5;         // scores at which a trial ends
constexpr double kReject = -0.7;
constexpr uint32_t kWaitMin = 2;
constexpr uint32_t kWaitMax = 256;
}  // namespace

ReadAheadDepth::ReadAheadDepth(const Range& range) noexcept
    : range_(range),
      bytes_(range.start_bytes),
      window_bytes_(std::max(kWindowBytesMin, kWindowDepths * range.start_bytes)),
      wait_windows_(kWaitMin) {
    HANARE_ASSERT(range.least_bytes >= 1 && range.least_bytes <= range.start_beside_others_bytes &&
                  range.start_beside_others_bytes <= range.start_bytes &&
                  range.start_bytes <= range.most_bytes);
}

uint64_t ReadAheadDepth::bytes() const noexcept {
    const uint64_t bytes = bytes_.load(std::memory_order_relaxed);
    if (streamed_bytes_.load(std::memory_order_relaxed) >=
        other_use_until_bytes_.load(std::memory_order_relaxed)) {
        return bytes;
    }
    return std::max(bytes * range_.start_beside_others_bytes / range_.start_bytes,
                    range_.least_bytes);
}

void ReadAheadDepth::note_other_use() noexcept {
    const uint64_t until = streamed_bytes_.load(std::memory_order_relaxed) + kOtherUseLastsBytes;
    // It is read for every block and mostly the same.
    if (other_use_until_bytes_.load(std::memory_order_relaxed) == until) return;
    other_use_until_bytes_.store(until, std::memory_order_relaxed);
}

uint64_t ReadAheadDepth::bytes_at(int level) const noexcept {
    return level < 0 ? range_.start_bytes >> -level : range_.start_bytes << level;
}

bool ReadAheadDepth::allows(int level) const noexcept {
    return level < 0 ? bytes_at(level) >= range_.least_bytes
                     : range_.start_bytes <= range_.most_bytes >> level;
}

void ReadAheadDepth::note(uint64_t bytes_consumed, uint64_t stalled_ns, uint64_t now_ns) noexcept {
    stalled_ns_.fetch_add(stalled_ns, std::memory_order_relaxed);
    streamed_bytes_.fetch_add(bytes_consumed, std::memory_order_relaxed);
    const uint64_t before = consumed_bytes_.fetch_add(bytes_consumed, std::memory_order_relaxed);
    if (before + bytes_consumed < window_bytes_.load(std::memory_order_relaxed)) return;
    if (!lock_.try_lock()) return;
    // Unless another thread has just done it.
    if (consumed_bytes_.load(std::memory_order_relaxed) >= window_bytes_) end_window(now_ns);
    lock_.unlock();
}

void ReadAheadDepth::end_window(uint64_t now_ns) noexcept {
    const uint64_t consumed = consumed_bytes_.exchange(0, std::memory_order_relaxed);
    const uint64_t stalled = stalled_ns_.exchange(0, std::memory_order_relaxed);
    const uint64_t elapsed = now_ns - std::min(now_ns, window_began_ns_);
    window_began_ns_ = now_ns;
    if (filling_) {
        filling_ = false;
        return;
    }
    const auto bytes = static_cast<double>(consumed);
    const Window window = {
        .stalled = static_cast<double>(stalled) / bytes,
        .running = static_cast<double>(elapsed - std::min(elapsed, stalled)) / bytes,
    };
    if (rival_ == kept_) {
        consider_trial(window);
    } else {
        go_on_with_trial(window);
    }
    last_ = window;
}

double ReadAheadDepth::saved(const Window& from, const Window& to) noexcept {
    // Pauses are taken out as far as only one of them had any.
    const double whole = std::max(from.stalled, to.stalled) + std::min(from.running, to.running);
    return whole > 0 ? (from.stalled - to.stalled) / whole : 0;
}

void ReadAheadDepth::consider_trial(const Window& window) noexcept {
    // The window before the first one after a trial may have had the rival's depth.
    const bool comparable = waited_windows_ > 0;
    // What trials found holds no longer.
    if (comparable && std::abs(saved(last_, window)) > kSavingMax) wait_windows_ = kWaitMin;
    const bool good = window.stalled < kSavingNeeded * (window.stalled + window.running);
    if (++waited_windows_ < wait_windows_ || (good && kept_ == 0)) return;
    const bool deeper = good ? kept_ < 0 : deeper_next_;
    int rival = kept_ + (deeper ? 1 : -1);
    if (!allows(rival)) rival = kept_ + (deeper ? -1 : 1);
    if (!allows(rival)) return;
    rival_ = rival;
    score_ = 0;
    apply(rival_);
}

void ReadAheadDepth::go_on_with_trial(const Window& window) noexcept {
    const bool rival_is_far = std::abs(rival_) > std::abs(kept_);
    const bool far_applied = (applied_ == rival_) == rival_is_far;
    const double by_far = far_applied ? saved(last_, window) : saved(window, last_);
    const double gain = std::clamp(by_far, -kSavingMax, kSavingMax) - kSavingNeeded;
    score_ += rival_is_far ? gain : -gain;
    if (score_ > kReject && score_ < kAdopt) {
        apply(applied_ == rival_ ? kept_ : rival_);
        return;
    }
    if (score_ >= kAdopt) {
        kept_ = rival_;
        wait_windows_ = kWaitMin;
    } else {
        rival_ = kept_;
        deeper_next_ = !deeper_next_;
        wait_windows_ = std::min(2 * wait_windows_, kWaitMax);
    }
    waited_windows_ = 0;
    apply(kept_);
}

void ReadAheadDepth::apply(int level) noexcept {
    applied_ = level;
    bytes_.store(bytes_at(level), std::memory_order_relaxed);
    const uint64_t larger = std::max(bytes_at(kept_), bytes_at(rival_));
    window_bytes_.store(std::max(kWindowBytesMin, kWindowDepths * larger),
                        std::memory_order_relaxed);
    filling_ = true;
}

}  // namespace hanare::pager
