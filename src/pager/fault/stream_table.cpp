// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/stream_table.hpp"

#include <algorithm>

#include "pager/fault/block.hpp"

namespace hanare::pager {

namespace {
constexpr uint32_t kFirstDepth = 4;
// Faults after which a stream is certain, so that a fault of a thread with random accesses may
// belong to it.
constexpr uint32_t kCertainFaults = 4;
// Faults in the region, other than its own, after which a stream is taken to have ended.
constexpr uint64_t kEndedAfter = 1024;
}  // namespace

bool StreamTable::all_present(uint32_t from, uint32_t count, int32_t step,
                              const Block* blocks) noexcept {
    for (uint32_t i = 0; i < count; ++i, from += static_cast<uint32_t>(step)) {
        const BlockState state = block_word::state(blocks[from].load());
        if (state == BlockState::kAbsent || state == BlockState::kSparse) return false;
    }
    return true;
}

StreamTable::Stream* StreamTable::match(uint32_t block, const Block* blocks, Begin begin,
                                        int32_t& step, uint32_t& distance) noexcept {
    for (Stream& stream : streams_) {
        if (stream.stamp == 0 || block == stream.head) continue;
        if (clock_ - stream.stamp > kEndedAfter) continue;
        if (begin == Begin::kIgnore && stream.lag_count < kCertainFaults) continue;
        step = block > stream.head ? 1 : -1;
        distance = block > stream.head ? block - stream.head : stream.head - block;
        if (stream.step == 0 || stream.lag_count == 1) {  // no direction yet, or a guess
            if (distance == 1) return &stream;
        } else if (step == stream.step && distance <= kGapMax &&
                   all_present(stream.head + static_cast<uint32_t>(step), distance - 1, step,
                               blocks)) {
            return &stream;
        }
    }
    return nullptr;
}

StreamTable::Stream* StreamTable::replace_oldest(uint32_t block) noexcept {
    Stream* oldest =
        std::min_element(streams_.begin(), streams_.end(),
                         [](const Stream& a, const Stream& b) { return a.stamp < b.stamp; });
    *oldest = Stream{};
    oldest->head = block;
    oldest->stamp = clock_;
    return oldest;
}

StreamTable::Advice StreamTable::observe(uint32_t block, const Block* blocks, uint32_t block_count,
                                         uint32_t depth_blocks, Begin begin) noexcept {
    Advice advice;
    if (!lock_.try_lock()) {
        advice.continues = true;  // as likely as not, and the cheaper mistake
        return advice;
    }
    ++clock_;
    int32_t step = 1;
    uint32_t distance = 1;
    Stream* stream = match(block, blocks, begin, step, distance);
    advice.continues = stream != nullptr;
    if (stream == nullptr) {
        if (begin != Begin::kIgnore) stream = replace_oldest(block);
        if (begin != Begin::kAtOnce) {
            lock_.unlock();
            return advice;
        }
        step = 1;
        distance = 0;
    }
    stream->stamp = clock_;
    stream->step = step;
    stream->head = block;
    stream->ahead -= std::min(stream->ahead, distance);
    stream->depth = std::min(depth_blocks, stream->depth == 0 ? kFirstDepth : stream->depth * 2);

    uint32_t& slot = stream->lag[stream->lag_count % kLag];
    if (stream->lag_count >= kLag) advice.behind = slot;
    slot = block;
    ++stream->lag_count;

    const uint32_t room = step > 0 ? block_count - 1 - block : block;
    const uint32_t wanted = std::min(stream->depth, room);
    // A sixteenth of the distance at a time: the device gets its next work early.
    if (wanted > stream->ahead &&
        (stream->ahead <= wanted - std::max(1u, wanted / 16) || wanted == room)) {
        advice.step = step;
        advice.count = wanted - stream->ahead;
        advice.first = step > 0 ? block + stream->ahead + 1 : block - stream->ahead - 1;
        stream->ahead = wanted;
    }
    lock_.unlock();
    return advice;
}

}  // namespace hanare::pager
