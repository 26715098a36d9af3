// SPDX-License-Identifier: Apache-2.0
#include "dsm/section_use.hpp"

namespace hanare::dsm {

std::span<const uint32_t> SectionUse::begin() noexcept {
    uint32_t wanted = 0;
    for (uint32_t i = 0; i < count_; ++i) {
        if (uses_[i].times == kNeeded) wanted_[wanted++] = uses_[i].block;
    }
    looks_ = wanted > 0 && ++sections_ >= pause_;
    if (looks_) return {};
    std::sort(wanted_.begin(), wanted_.begin() + wanted);
    return std::span(wanted_).first(wanted);
}

// What came along does not count as needed, but if that is known already it stays so.
void SectionUse::note(Miss miss) noexcept {
    const auto end = uses_.begin() + count_;
    const auto use = std::find_if(uses_.begin(), end,
                                  [miss](const Use& other) { return other.block == miss.block; });
    if (use != end) {
        if (!use->is_missed && !miss.came_along) use->times = kNeeded;
        use->is_missed = true;
    } else if (count_ < kBlocksMax && !miss.came_along) {
        uses_[count_++] = {.block = miss.block, .times = kOnce, .is_missed = true};
    }
}

// What was fetched is not missed, whether it was of use or not: that shows when nothing was.
void SectionUse::end(std::span<const Miss> missed) noexcept {
    for (uint32_t i = 0; i < count_; ++i) uses_[i].is_missed = false;
    for (const Miss& miss : missed) note(miss);
    uint32_t needed = 0;
    uint32_t needed_still = 0;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count_; ++i) {
        const Use& use = uses_[i];
        if (use.times == kNeeded) ++needed;
        if (use.times == kNeeded && use.is_missed) ++needed_still;
        if (use.is_missed || (use.times == kNeeded && !looks_)) uses_[kept++] = use;
    }
    count_ = kept;
    if (!looks_) return;
    pause_ = 4 * needed_still >= 3 * needed ? std::min(2 * pause_, kPauseMax) : kPauseMin;
    sections_ = 0;
    looks_ = false;
}

}  // namespace hanare::dsm
