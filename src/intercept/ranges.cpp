// SPDX-License-Identifier: Apache-2.0
#include "intercept/ranges.hpp"

#include <algorithm>

namespace hanare::intercept {

void RangeMap::count(uintptr_t begin, const Rest& rest, bool added) noexcept {
    uint64_t& bytes = bytes_[static_cast<size_t>(rest.kind)];
    bytes = added ? bytes + (rest.end - begin) : bytes - (rest.end - begin);
}

RangeMap::Map::iterator RangeMap::insert(uintptr_t begin, Rest rest) {
    count(begin, rest, true);
    return ranges_.insert_or_assign(begin, rest).first;
}

void RangeMap::remove(Map::const_iterator position) {
    count(position->first, position->second, false);
    ranges_.erase(position);
}

RangeMap::Map::const_iterator RangeMap::first_behind(uintptr_t address) const noexcept {
    auto next = ranges_.upper_bound(address);
    if (next != ranges_.begin() && std::prev(next)->second.end > address) --next;
    return next;
}

void RangeMap::erase(uintptr_t begin, uintptr_t end) {
    for (auto at = first_behind(begin); at != ranges_.end() && at->first < end;) {
        const Range whole{at->first, at->second.end, at->second.kind};
        remove(at++);
        if (whole.begin < begin) insert(whole.begin, {begin, whole.kind});
        if (whole.end > end) insert(end, {whole.end, whole.kind});
    }
}

void RangeMap::set(uintptr_t begin, uintptr_t end, RangeKind kind) {
    if (begin >= end) return;
    erase(begin, end);
    const auto next = ranges_.lower_bound(begin);
    if (next != ranges_.end() && next->first == end && next->second.kind == kind) {
        end = next->second.end;
        remove(next);
    }
    const auto after = ranges_.lower_bound(begin);
    if (after != ranges_.begin()) {
        const auto before = std::prev(after);
        if (before->second.end == begin && before->second.kind == kind) {
            begin = before->first;
            remove(before);
        }
    }
    insert(begin, {end, kind});
}

std::vector<Range> RangeMap::overlapping(uintptr_t begin, uintptr_t end) const {
    std::vector<Range> found;
    for (auto at = first_behind(begin); at != ranges_.end() && at->first < end; ++at) {
        found.push_back(
            {std::max(at->first, begin), std::min(at->second.end, end), at->second.kind});
    }
    return found;
}

bool RangeMap::any(uintptr_t begin, uintptr_t end) const {
    const auto at = first_behind(begin);
    return at != ranges_.end() && at->first < end;
}

std::optional<Range> RangeMap::first(uintptr_t begin, uintptr_t end,
                                     RangeKind kind) const noexcept {
    for (auto at = first_behind(begin); at != ranges_.end() && at->first < end; ++at) {
        if (at->second.kind != kind) continue;
        return Range{std::max(at->first, begin), std::min(at->second.end, end), kind};
    }
    return std::nullopt;
}

bool RangeMap::any(uintptr_t begin, uintptr_t end, RangeKind kind) const {
    return first(begin, end, kind).has_value();
}

bool RangeMap::all(uintptr_t begin, uintptr_t end, RangeKind kind) const {
    const auto at = first_behind(begin);
    return at != ranges_.end() && at->first <= begin && at->second.end >= end &&
           at->second.kind == kind;
}

void BlockGaps::add(uint32_t begin, uint32_t end) {
    gaps_[begin] = end;
    by_length_.insert({end - begin, begin});
}

void BlockGaps::drop(std::map<uint32_t, uint32_t>::iterator gap) {
    by_length_.erase({gap->second - gap->first, gap->first});
    gaps_.erase(gap);
}

std::optional<uint32_t> BlockGaps::take(uint32_t count) {
    const auto found = by_length_.lower_bound({count, 0});
    if (found == by_length_.end()) return std::nullopt;
    const uint32_t begin = found->second;
    take_at(begin, count);
    return begin;
}

bool BlockGaps::take_at(uint32_t begin, uint32_t count) {
    if (count == 0 || free_from(begin) < count) return false;
    const auto gap = std::prev(gaps_.upper_bound(begin));
    const auto [first, last] = *gap;
    drop(gap);
    if (first < begin) add(first, begin);
    if (last > begin + count) add(begin + count, last);
    return true;
}

void BlockGaps::give(uint32_t begin, uint32_t count) {
    if (count == 0) return;
    uint32_t end = begin + count;
    auto next = gaps_.lower_bound(begin);
    if (next != gaps_.end() && next->first == end) {
        end = next->second;
        drop(next++);
    }
    if (next != gaps_.begin()) {
        const auto before = std::prev(next);
        if (before->second == begin) {
            begin = before->first;
            drop(before);
        }
    }
    add(begin, end);
}

uint32_t BlockGaps::free_from(uint32_t begin) const {
    auto gap = gaps_.upper_bound(begin);
    if (gap == gaps_.begin()) return 0;
    --gap;
    return gap->second > begin ? gap->second - begin : 0;
}

}  // namespace hanare::intercept
