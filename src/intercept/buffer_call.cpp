// SPDX-License-Identifier: Apache-2.0
#include "intercept/buffer_call.hpp"

#include <sys/syscall.h>

#include "pager/fault/residency.hpp"
#include "sys/signal.hpp"

namespace hanare::intercept {

using hook::SystemCall;
using hook::Verdict;

namespace {

// Whether the program may use what of [begin, end) is in the block, and no fault is needed for
// that.
bool is_part_there(const pager::Region& region, uint32_t index, uint64_t begin, uint64_t end,
                   bool write) {
    const auto* const from = reinterpret_cast<const std::byte*>(begin);
    const auto* const last_byte = reinterpret_cast<const std::byte*>(end - 1);
    const uint32_t first_part = index == region.index_of(from) ? region.part_of(from) : 0;
    const uint32_t last_part = index == region.index_of(last_byte) ? region.part_of(last_byte)
                                                                   : region.parts_per_block - 1;
    return pager::are_present(region, index, first_part, last_part, write);
}

}  // namespace

// Somebody waits for what was held.
void BufferCalls::note_progress(SystemCall& call) {
    const auto note = [](void* frames) {
        const sys::SignalBlockButFaults signals;
        static_cast<pager::FrameTable*>(frames)->note_progress();
    };
    hook::hanare_hook_with_vector_registers(note, call.context);
}

bool BufferCalls::is_transfer(uint32_t number) noexcept {
    return number == SYS_read || number == SYS_write || number == SYS_pread64 ||
           number == SYS_pwrite64;
}

bool BufferCalls::are(const SystemCallArguments& row) noexcept {
    using Size = ArgumentSize::Kind;
    if (row.pointers().size() != 1) return false;
    const Argument& pointer = row.pointers()[0];
    const bool is_buffer = pointer.kind == ArgumentKind::kIn ||
                           pointer.kind == ArgumentKind::kOut ||
                           pointer.kind == ArgumentKind::kInOut;
    const bool is_told = pointer.size.kind == Size::kFixed ||
                         (pointer.size.kind == Size::kCounted && pointer.size.argument == 2);
    // Only of a file it is known whether a call on it waits for anybody.
    return (is_transfer(row.number) || !row.may_block) && is_buffer && is_told &&
           pointer.index == 1 && pointer.size.unit != 0 && !pointer.holds_addresses &&
           !pointer.kept && !pointer.uncertain;
}

void BufferCalls::add(const SystemCallArguments& row) noexcept {
    const Argument& pointer = row.pointers()[0];
    buffers_[row.number] = {.unit = pointer.size.unit,
                            .extra = pointer.size.extra,
                            .is_counted = pointer.size.kind == ArgumentSize::Kind::kCounted,
                            .is_count_int = pointer.size.is_int,
                            .is_written = pointer.kind != ArgumentKind::kIn,
                            .may_block = row.may_block};
}

bool BufferCalls::are_there(const pager::Region& region, uint64_t begin, uint64_t end, bool write) {
    uint32_t index = region.index_of(reinterpret_cast<const std::byte*>(begin));
    const uint32_t last = region.index_of(reinterpret_cast<const std::byte*>(end - 1));
    for (; index <= last; ++index) {
        if (is_there(region, index)) continue;
        const uint8_t access = region.access_of(index).load(std::memory_order_relaxed);
        if ((access & pager::block_access::kUsable) == 0) return false;
        if (!is_part_there(region, index, begin, end, write)) return false;
    }
    return true;
}

}  // namespace hanare::intercept
