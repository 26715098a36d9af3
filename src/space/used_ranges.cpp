// SPDX-License-Identifier: Apache-2.0
#include "space/used_ranges.hpp"

#include <algorithm>

#include "base/units.hpp"

namespace hanare::space {

void UsedRanges::begin(std::span<Range> room, Range whole) noexcept {
    ranges_ = room;
    whole_ = whole;
    count_ = 0;
}

Range UsedRanges::clipped(Range range) const noexcept {
    return {std::max(range.begin, whole_.begin), std::min(range.end, whole_.end)};
}

size_t UsedRanges::first_behind(uint64_t address) const noexcept {
    size_t low = 0;
    size_t high = count_;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (ranges_[middle].end <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool UsedRanges::replace(size_t from, size_t until, std::span<const Range> by) noexcept {
    const size_t after = count_ - (until - from) + by.size();
    if (after > ranges_.size()) return false;
    if (by.size() > until - from) {
        const size_t shift = by.size() - (until - from);
        for (size_t i = count_; i > until; --i) ranges_[i - 1 + shift] = ranges_[i - 1];
    } else {
        const size_t shift = until - from - by.size();
        for (size_t i = until; i < count_; ++i) ranges_[i - shift] = ranges_[i];
    }
    for (size_t i = 0; i < by.size(); ++i) ranges_[from + i] = by[i];
    count_ = after;
    return true;
}

bool UsedRanges::add(Range wanted) noexcept {
    Range range = clipped(wanted);
    if (range.begin >= range.end) return true;
    // Also what ends where it begins.
    const size_t from = first_behind(range.begin - 1);
    size_t until = from;
    while (until < count_ && ranges_[until].begin <= range.end) ++until;
    if (from < until) {
        range.begin = std::min(range.begin, ranges_[from].begin);
        range.end = std::max(range.end, ranges_[until - 1].end);
    }
    return replace(from, until, {&range, 1});
}

bool UsedRanges::remove(Range wanted) noexcept {
    const Range range = clipped(wanted);
    if (range.begin >= range.end) return true;
    const size_t from = first_behind(range.begin);
    size_t until = from;
    while (until < count_ && ranges_[until].begin < range.end) ++until;
    if (from == until) return true;
    Range left[2];
    size_t count = 0;
    if (ranges_[from].begin < range.begin) left[count++] = {ranges_[from].begin, range.begin};
    if (ranges_[until - 1].end > range.end) left[count++] = {range.end, ranges_[until - 1].end};
    return replace(from, until, {left, count});
}

bool UsedRanges::is_free(Range range) const noexcept {
    if (!contains(range)) return false;
    const size_t index = first_behind(range.begin);
    return index == count_ || ranges_[index].begin >= range.end;
}

uint64_t UsedRanges::find_free(uint64_t bytes, uint64_t alignment, uint64_t from) const noexcept {
    uint64_t place = round_up(std::max(from, whole_.begin), alignment);
    for (size_t index = first_behind(place);; ++index) {
        const uint64_t limit = index < count_ ? ranges_[index].begin : whole_.end;
        if (place <= limit && bytes <= limit - place) return place;
        if (index == count_) return 0;
        place = std::max(place, round_up(ranges_[index].end, alignment));
    }
}

}  // namespace hanare::space
