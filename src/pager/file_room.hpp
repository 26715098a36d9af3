// SPDX-License-Identifier: Apache-2.0
//
// FileRoom: what is left to the kernel, of the memory that a program may have, for the files that
// it maps, its own code first.  A program whose code does not stay in memory waits for it all the
// time; its major faults tell.  So the budget shrinks while there are many, as long as that helps,
// and grows again, slowly, where there are none.
//
// By one thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hanare::pager {

class FileRoom {
public:
    // At `now_ns` the process has had so many major faults.  `is_short`: it has what it may have.
    // Returns the bytes to leave, of `share` bytes.
    uint64_t update(uint64_t now_ns, uint64_t major_faults, uint64_t share,
                    bool is_short) noexcept {
        if (now_ns - seen_ns_ < kPeriodNs) return bytes_;
        const uint64_t rate = (major_faults - seen_faults_) * kSecondNs / (now_ns - seen_ns_);
        const bool is_first = seen_ns_ == 0;
        seen_ns_ = now_ns;
        seen_faults_ = major_faults;
        if (is_first) return bytes_;
        if (rate >= kMany && is_short && now_ns >= vain_until_ns_) {
            if (bytes_ == 0) rate_at_first_ = rate;
            if (bytes_ < share / kMostShare) {
                bytes_ = std::min(bytes_ + share / kStepShare, share / kMostShare);
            } else if (rate > rate_at_first_ / 2) {
                bytes_ = 0;  // they are read once, perhaps: room does not help
                vain_until_ns_ = now_ns + kVainNs;
            }
        } else if (rate < kFew) {
            bytes_ -= std::min(bytes_, share / kBackShare);
        }
        return bytes_;
    }

private:
    static constexpr uint64_t kSecondNs = 1'000'000'000;
    static constexpr uint64_t kPeriodNs = kSecondNs / 10;
    static constexpr uint64_t kVainNs = 30 * kSecondNs;
    // Major faults in a second.
    static constexpr uint64_t kMany = 100;
    static constexpr uint64_t kFew = 10;
    // Parts of the share: in all, for each period with many, and back for each without.
    static constexpr uint64_t kMostShare = 3;
    static constexpr uint64_t kStepShare = 48;
    static constexpr uint64_t kBackShare = 2048;

    uint64_t bytes_ = 0;
    uint64_t seen_ns_ = 0;
    uint64_t seen_faults_ = 0;
    uint64_t rate_at_first_ = 0;
    uint64_t vain_until_ns_ = 0;
};

}  // namespace hanare::pager
