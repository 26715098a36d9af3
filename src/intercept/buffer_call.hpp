// SPDX-License-Identifier: Apache-2.0
//
// System calls whose only address is that of a buffer, in the second argument, such as read and
// write: the usual case of them, made in a few nanoseconds more than without Hanare.  Usual is that
// the call does not wait for anybody, and that the buffer is far memory and all there, or none of
// it is.  Everything else is FarCall's (far_call.hpp).
//
// Async-signal-safe; compiled for general registers only.  Not noexcept: a cancelled thread unwinds
// through it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "hook/rewrite/system_call.hpp"
#include "intercept/arguments.hpp"
#include "intercept/far_arguments.hpp"
#include "intercept/file_kinds.hpp"
#include "intercept/space.hpp"
#include "pager/fault/holds.hpp"
#include "pager/fault/pager.hpp"

namespace hanare::intercept {

class BufferCalls {
public:
    // Whether it transfers bytes of a file (hook::Transfers).
    static bool is_transfer(uint32_t number) noexcept;
    // Of calls that the table of arguments has, and that need nothing else done.
    void add(const SystemCallArguments& row) noexcept;
    // Whether a call is of the kind.
    static bool are(const SystemCallArguments& row) noexcept;

    // Nothing was done, since the call or its case is another one.  In a register, as all verdicts.
    static constexpr auto kNotUsual = static_cast<hook::Verdict>(3);
    // kMost: of one block that is all there, a file that was seen before and a thread that was
    // here before, with a stack that is far from far memory; to be inlined, since nothing in it is
    // called.
    enum class Cases { kMost, kAll };
    template <Cases cases>
    [[gnu::always_inline]] inline hook::Verdict answer(Space& space, hook::SystemCall& call) const;

private:
    struct Buffer {
        uint16_t unit = 0;  // bytes; 0: the call is another one
        uint16_t extra = 0;
        bool is_counted = false;  // by the third argument
        bool is_count_int = false;
        bool is_written = false;  // by the kernel
        bool may_block = false;
    };

    // So many calls that were protected, and one of them asks whether those of its file need that.
    static constexpr uint64_t kConsideredEvery = 32;

    static uint64_t bytes_of(const Buffer& buffer, const hook::SystemCall& call) noexcept {
        const uint64_t told =
            buffer.is_count_int ? static_cast<uint32_t>(call.arguments[2]) : call.arguments[2];
        return (buffer.is_counted ? told * buffer.unit : buffer.unit) + buffer.extra;
    }
    [[gnu::always_inline]] static bool is_there(const pager::Region& region, uint32_t index) {
        const uint8_t access = region.access_of(index).load(std::memory_order_relaxed);
        return (access & pager::block_access::kUsable) != 0 &&
               pager::block_word::state(region.block(index).load()) == pager::BlockState::kWritable;
    }
    // The same of several blocks, or of parts of one.
    static bool are_there(const pager::Region& region, uint64_t begin, uint64_t end, bool write);
    static void note_progress(hook::SystemCall& call);

    std::array<Buffer, kSystemCallsMax> buffers_{};
};

template <BufferCalls::Cases cases>
hook::Verdict BufferCalls::answer(Space& space, hook::SystemCall& call) const {
    if (call.number >= kSystemCallsMax) return kNotUsual;
    const Buffer& buffer = buffers_[call.number];
    if (buffer.unit == 0) return kNotUsual;
    const uint64_t begin = call.arguments[1];
    const uint64_t bytes = bytes_of(buffer, call);
    const auto stack = reinterpret_cast<uintptr_t>(call.stack);
    if (hook::is_near_handlers_memory(stack)) {
        if (cases == Cases::kMost || space.contains(stack)) return kNotUsual;
    }
    const size_t area = space.area_of(begin);
    if (area == Space::kAreas) {
        if (cases == Cases::kMost || space.overlaps(begin, begin + bytes)) return kNotUsual;
        return hook::Verdict::kNative;
    }
    if (bytes == 0 || bytes > piece_bytes.load(std::memory_order_relaxed)) return kNotUsual;
    if (buffer.may_block) {
        const uint64_t file = call.arguments[0];
        if (cases == Cases::kMost ? !is_known_to_be_prompt(file) : !transfers_promptly(file)) {
            return kNotUsual;
        }
    }
    pager::Region* const region = space.region_at(area);
    if (region == nullptr || begin + bytes > reinterpret_cast<uintptr_t>(region->end())) {
        return kNotUsual;
    }
    if (cases == Cases::kMost && buffer.may_block &&
        space.protected_calls() % kConsideredEvery == 0) {
        return kNotUsual;
    }
    // Published first, then looked at: whoever evicts does it the other way round.
    pager::Holds::Hold* hold = nullptr;
    if (cases == Cases::kAll && !pager::holds.know_caller()) {
        hold = pager::holds.publish(begin, begin + bytes, stack);
    } else {
        hold = pager::holds.publish_only(begin, begin + bytes, stack, !space.has_threads());
    }
    if (hold == nullptr) return kNotUsual;
    const uint32_t index = region->index_of(reinterpret_cast<const std::byte*>(begin));
    const uint32_t last = region->index_of(reinterpret_cast<const std::byte*>(begin + bytes - 1));
    if (index != last || !is_there(*region, index)) {
        if (cases == Cases::kMost || !are_there(*region, begin, begin + bytes, buffer.is_written)) {
            pager::Holds::release(*hold);
            return kNotUsual;
        }
    }
    if (cases == Cases::kAll && buffer.may_block &&
        space.protected_calls() % kConsideredEvery == 0) {
        consider_beginning(call.arguments[0]);
    }
    space.count_protected_call();
    pager::FrameTable& frames = region->pager->frames();
    call.cleared = &hold->end;
    call.watched = &frames.progress_waiters();
    call.after = note_progress;
    call.context = &frames;
    return hook::Verdict::kThenAfter;
}

}  // namespace hanare::intercept
