// SPDX-License-Identifier: Apache-2.0
//
// FileRoom: what is left to the kernel, of the memory that far memory may have, for the files that
// a program maps, its own code first.  A program whose code does not stay in memory waits for it
// all the time; its major faults tell.  So room is made, in steps, while there are many; it is
// given back in smaller steps where there are few, and at once where there are as many all the
// same, as of who reads a file through a mapping.
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
        const uint64_t most = share / kMostShare;
        bytes_ = std::min(bytes_, most);
        if (now_ns - seen_ns_ < kPeriodNs) return bytes_;
        const bool is_first = seen_ns_ == 0;
        const uint64_t rate = (major_faults - seen_faults_) * kSecondNs / (now_ns - seen_ns_);
        seen_ns_ = now_ns;
        seen_faults_ = major_faults;
        if (is_first) return bytes_;
        if (rate < kMany) {
            many_periods_ = 0;
            bytes_ -= std::min(bytes_, share / (rate < kFew ? kBackShare : kSlowBackShare));
        } else if (is_short && now_ns >= vain_until_ns_) {
            ++many_periods_;
            if (bytes_ == most && many_periods_ >= kVainPeriods) {
                bytes_ = 0;
                many_periods_ = 0;
                vain_until_ns_ = now_ns + kVainNs;
            } else if (many_periods_ >= kPeriodsAtFirst) {
                bytes_ = std::min(bytes_ + share / kStepShare, most);
            }
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
    // Periods with many, one after the other: before room is made, as programs begin so; and after
    // which it is known not to help.
    static constexpr uint32_t kPeriodsAtFirst = 3;
    static constexpr uint32_t kVainPeriods = 40;
    // Parts of the share: in all, for a period with many, and back for one with few or some.
    static constexpr uint64_t kMostShare = 3;
    static constexpr uint64_t kStepShare = 48;
    static constexpr uint64_t kBackShare = 1024;
    static constexpr uint64_t kSlowBackShare = 4096;

    uint64_t bytes_ = 0;
    uint64_t seen_ns_ = 0;
    uint64_t seen_faults_ = 0;
    uint64_t vain_until_ns_ = 0;
    uint32_t many_periods_ = 0;
};

}  // namespace hanare::pager
