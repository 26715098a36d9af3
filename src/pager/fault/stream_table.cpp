// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/stream_table.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

#include "pager/fault/block.hpp"
#include "pager/fault/parts.hpp"

namespace hanare::pager {

namespace {
// Faults after which a stream is certain, so that a fault of a thread with random accesses may
// belong to it.
constexpr uint32_t kCertainFaults = 4;
// Faults of a stream of neighbours after which what comes next may be mapped ahead of its fault.
constexpr uint32_t kSteadyFaults = 16;
// Faults in the region, other than its own, after which a stream is taken to have ended.
constexpr uint64_t kEndedAfter = 1024;

// Steps from `block` that stay inside the region.
uint32_t step_count(uint32_t block, int32_t step, uint32_t block_count) {
    return step > 0 ? (block_count - 1 - block) / static_cast<uint32_t>(step)
                    : block / static_cast<uint32_t>(-step);
}

int64_t place_of(uint32_t block, uint32_t part, const StreamTable::Surroundings& around) {
    return int64_t{block} * around.parts_per_block + part;
}

}  // namespace

bool StreamTable::all_present(uint32_t head, uint32_t steps, int32_t step, const Block* blocks,
                              bool or_sparse) noexcept {
    for (uint32_t i = 1; i < steps; ++i) {
        head += static_cast<uint32_t>(step);
        const BlockState state = block_word::state(blocks[head].load());
        if (state == BlockState::kAbsent) return false;
        if (state == BlockState::kSparse && !or_sparse) return false;
    }
    return true;
}

bool StreamTable::is_live(const Stream& stream) const noexcept {
    return stream.stamp != 0 && clock_ - stream.stamp <= kEndedAfter;
}

uint32_t StreamTable::count_in_turn() const noexcept {
    const auto count =
        std::ranges::count_if(streams_, [&](const Stream& stream) HANARE_REQUIRES(lock_) {
            return stream.stamp != 0 && stream.step != 0 && clock_ - stream.stamp <= 2 * kStreams;
        });
    return std::max(static_cast<uint32_t>(count), 1u);
}

bool StreamTable::comes_to(const Stream& stream, int64_t delta, uint32_t part,
                           const Surroundings& around) noexcept {
    const uint32_t parts_per_block = around.parts_per_block;
    const uint64_t needed = stream.parts | uint64_t{1} << stream.place % parts_per_block;
    const uint32_t reach = 1 + (delta == 0 ? around.beside : 0);
    const uint32_t first = part - std::min(part, reach);
    const uint32_t last = std::min(part + reach, uint32_t{63});
    if ((needed >> first & all_ones(last + 1 - first)) != 0) return true;
    if (delta == 0) return false;
    const uint32_t from_edge = delta > 0 ? part : parts_per_block - 1 - part;
    return from_edge <= std::max(parts_per_block / kEdgeShare, around.beside);
}

StreamTable::Stream* StreamTable::match(uint32_t block, uint32_t part, const Surroundings& around,
                                        Begin begin, uint32_t& distance) noexcept {
    for (Stream& stream : streams_) {
        if (!is_live(stream)) continue;
        if (begin == Begin::kIgnore && stream.lag_count < kCertainFaults) continue;
        const int64_t delta = int64_t{block} - stream.head;
        // Among few blocks random accesses meet the next block of some stream all the time.
        const bool stays =
            delta == 0 && begin != Begin::kIgnore && clock_ - stream.stamp <= kStreams;
        // How far it has got in what was whole, and so without a fault, is not known.
        const bool returns = delta == 0 && stream.step != 0 &&
                             block_word::state(around.blocks[block].load()) == BlockState::kStaged;
        if (around.may_be_sparse && std::abs(stream.step) <= 1 && !stays && !returns &&
            !comes_to(stream, delta, part, around)) {
            continue;
        }
        if (delta == 0 && stream.step != 0) {
            distance = 0;
            return &stream;
        }
        const bool sequential = std::abs(stream.step) <= 1;
        if (stream.step == 0 || (sequential && stream.lag_count == 1)) {  // no step yet, or a guess
            if (std::abs(delta) != 1) continue;
            stream.step = static_cast<int32_t>(delta);
            return &stream;
        }
        const int64_t steps = delta / stream.step;
        if (steps * stream.step != delta || steps < 0 || steps > kGapMax) continue;
        const int64_t place = place_of(block, part, around);
        const int64_t error = place - stream.place - steps * stream.stride;
        if (!sequential && std::abs(error) > std::max<int64_t>(steps, 1)) continue;
        if (!all_present(stream.head, static_cast<uint32_t>(steps), stream.step, around.blocks,
                         around.by_parts && begin != Begin::kIgnore)) {
            continue;
        }
        distance = static_cast<uint32_t>(steps);
        return &stream;
    }
    return nullptr;
}

// Arrays that are passed through together may lie at equal distances, too: what might be the begin
// of a stream of neighbours stays that.
// In parts, since among few blocks many lie at equal distances by chance.
StreamTable::Stream* StreamTable::begin_stride(uint32_t block, int64_t place,
                                               bool may_be_sparse) noexcept {
    const auto is_single = [&](const Stream& stream) HANARE_REQUIRES(lock_) {
        return stream.step == 0 && is_live(stream) && stream.head != block;
    };
    for (const Stream& last : streams_) {
        const int64_t delta = int64_t{block} - last.head;
        const int64_t stride = place - last.place;
        const bool found = is_single(last) &&
                           std::any_of(streams_.begin(), streams_.end(),
                                       [&](const Stream& first) HANARE_REQUIRES(lock_) {
                                           return is_single(first) && first.stamp < last.stamp &&
                                                  int64_t{last.head} - first.head == delta &&
                                                  std::abs(last.place - first.place - stride) <= 1;
                                       });
        if (!found) continue;
        const uint32_t before = last.head;
        const int64_t place_before = last.place;
        replace_oldest(block, place);
        Stream* const stream = replace_oldest(before, place_before);
        stream->step = static_cast<int32_t>(delta);
        stream->stride = stride;
        stream->dense = !may_be_sparse;
        advance(*stream, before, place_before);
        return stream;
    }
    return nullptr;
}

uint32_t StreamTable::advance(Stream& stream, uint32_t block, int64_t place) noexcept {
    stream.head = block;
    stream.place = place;
    uint32_t& slot = stream.lag[stream.lag_count % kLag];
    const uint32_t behind = stream.lag_count >= kLag ? slot : kNone;
    slot = block;
    ++stream.lag_count;
    return behind;
}

// Further faults on the block of a stream of one fault tell nothing more.
StreamTable::Stream* StreamTable::begin_single(uint32_t block, int64_t place) noexcept {
    const auto same =
        std::ranges::find_if(streams_, [&](const Stream& stream) HANARE_REQUIRES(lock_) {
            return stream.step == 0 && stream.head == block && is_live(stream);
        });
    if (same == streams_.end()) return replace_oldest(block, place);
    same->place = place;
    same->stamp = clock_;
    return &*same;
}

StreamTable::Stream* StreamTable::replace_oldest(uint32_t block, int64_t place) noexcept {
    Stream* oldest =
        std::min_element(streams_.begin(), streams_.end(),
                         [](const Stream& a, const Stream& b) { return a.stamp < b.stamp; });
    *oldest = Stream{};
    oldest->head = block;
    oldest->place = place;
    oldest->stamp = clock_;
    return oldest;
}

StreamTable::Advice StreamTable::observe(uint32_t block, uint32_t part, bool write,
                                         const Surroundings& around, Begin begin) noexcept {
    Advice advice;
    if (!lock_.try_lock()) {
        advice.continues = begin != Begin::kIgnore;  // as likely as not
        return advice;
    }
    advice = observe_locked(block, part, write, around, begin);
    lock_.unlock();
    return advice;
}

StreamTable::Advice StreamTable::observe_locked(uint32_t block, uint32_t part, bool write,
                                                const Surroundings& around, Begin begin) noexcept {
    Advice advice;
    ++clock_;
    const int64_t place = place_of(block, part, around);
    uint32_t distance = 1;
    Stream* stream = match(block, part, around, begin, distance);
    if (stream == nullptr && begin == Begin::kCandidate) {
        stream = begin_stride(block, place, around.may_be_sparse);
    }
    advice.continues = stream != nullptr;
    if (stream == nullptr) {
        if (begin == Begin::kIgnore) return advice;
        stream = begin_single(block, place);
        if (begin != Begin::kAtOnce) return advice;
        stream->step = 1;
    }
    // What was there before this many other faults, as of streams that take turns, is another
    // visit.
    const bool comes_back = distance == 0 && clock_ - stream->stamp > kStreams;
    stream->stamp = clock_;
    if (comes_back) {
        stream->parts = 0;
        stream->written = false;
    }
    if (distance > 0) {
        advice.behind = advance(*stream, block, place);
        stream->ahead -= std::min(stream->ahead, distance);
        advice.left_parts = std::exchange(stream->parts, 0);
        advice.left_written = std::exchange(stream->written, false);
    }
    stream->parts |= uint64_t{1} << part;
    stream->written |= write;
    if (around.by_chance && stream->lag_count < kCertainFaults) {
        advice.continues = false;
        return advice;
    }
    advice.parts = stream->parts;
    if (std::popcount(advice.parts) > 1) stream->dense = true;
    if (!around.may_be_sparse || begin == Begin::kAtOnce) stream->dense = true;
    advice.part = !stream->dense;
    if (advice.part) return advice;
    const bool is_steady = distance > 0 && stream->lag_count >= kSteadyFaults;
    if (is_steady && std::abs(stream->step) == 1) advice.along = stream->step;

    if (stream->depth == 0) {
        stream->depth = around.first_depth;
    } else if (distance > 0) {
        // What is read in vain when a stream ends is at most what it has needed, or a little.
        stream->depth = stream->depth < around.quick_blocks
                            ? std::min(2 * stream->depth, around.quick_blocks)
                            : stream->depth + 1;
    }
    // What one stream reads ahead must not push out, before it is used, what others have read.
    const uint32_t share = around.shared_blocks / count_in_turn();
    stream->depth = std::min({stream->depth, around.depth_blocks, share});
    const uint32_t room = step_count(block, stream->step, around.block_count);
    const uint32_t wanted = std::min(stream->depth, room);
    // An eighth of the distance at a time: the device gets its next work early, and not in pieces.
    if (wanted > stream->ahead &&
        (stream->ahead <= wanted - std::max(1u, wanted / 8) || wanted == room)) {
        advice.step = stream->step;
        advice.count = wanted - stream->ahead;
        advice.first = block + (stream->ahead + 1) * static_cast<uint32_t>(stream->step);
        stream->ahead = wanted;
    }
    return advice;
}

}  // namespace hanare::pager
