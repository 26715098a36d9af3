// SPDX-License-Identifier: Apache-2.0
#include "compose/group_table.hpp"

#include "base/units.hpp"
#include "sys/clock.hpp"
#include "sys/futex.hpp"
#include "sys/process_usage.hpp"

namespace hanare::compose {

namespace {

constexpr uint64_t kStoreBytesMax = uint64_t{8} << 40;
// Of the addresses that are left, where they are limited.
constexpr uint64_t kAddressesShare = 16;

// In a word of the table: a place is there, its member, and its offset in chunks.
constexpr uint64_t kIsThere = uint64_t{1} << 63;
constexpr int kMemberShift = 48;
constexpr uint64_t kMemberMask = 0xff;
constexpr uint64_t kChunkMask = (uint64_t{1} << kMemberShift) - 1;
constexpr int kChunkShift = 22;

uint64_t word_of(const Place& place) {
    return kIsThere | uint64_t{place.member} << kMemberShift | place.offset >> kChunkShift;
}

constexpr uint64_t kNsPerMs = 1'000'000;

}  // namespace

bool Group::try_enter() noexcept {
    uint32_t seen = gate_.load(std::memory_order_relaxed);
    while ((seen & kClosed) == 0) {
        if (gate_.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire)) return true;
    }
    return false;
}

void Group::enter() noexcept {
    while (!try_enter()) {
        const uint32_t seen = gate_.load(std::memory_order_relaxed);
        if ((seen & kClosed) != 0) sys::futex_wait(gate_, seen);
    }
}

void Group::leave() noexcept {
    if (gate_.fetch_sub(1, std::memory_order_release) == kClosed + 1) sys::futex_wake_all(gate_);
}

bool Group::close(int timeout_ms) noexcept {
    if ((gate_.fetch_or(kClosed, std::memory_order_acquire) & kClosed) != 0) return false;
    const uint64_t end_ns = sys::now_ns() + static_cast<uint64_t>(timeout_ms) * kNsPerMs;
    for (;;) {
        const uint32_t seen = gate_.load(std::memory_order_acquire);
        if (seen == kClosed) return true;
        const uint64_t now_ns = sys::now_ns();
        if (now_ns >= end_ns) break;
        sys::futex_wait(gate_, seen, static_cast<int>((end_ns - now_ns) / kNsPerMs) + 1);
    }
    open();
    return false;
}

void Group::open() noexcept {
    gate_.fetch_and(~kClosed, std::memory_order_release);
    sys::futex_wake_all(gate_);
}

std::atomic<uint64_t>& Group::word(uint32_t role) const noexcept {
    auto* const behind = const_cast<Group*>(this) + 1;
    return reinterpret_cast<std::atomic<uint64_t>*>(behind)[role];
}

std::optional<Place> Group::place(uint32_t role) const noexcept {
    const uint64_t seen = word(role).load(std::memory_order_relaxed);
    if ((seen & kIsThere) == 0) return std::nullopt;
    return Place{static_cast<uint32_t>(seen >> kMemberShift & kMemberMask), (seen & kChunkMask)
                                                                                << kChunkShift};
}

void Group::set_place(uint32_t role, Place place) noexcept {
    word(role).store(word_of(place), std::memory_order_relaxed);
}

void Group::offer_place(uint32_t role, Place place) noexcept {
    uint64_t none = 0;
    word(role).compare_exchange_strong(none, word_of(place));
}

void Group::clear_place(uint32_t role) noexcept { word(role).store(0, std::memory_order_relaxed); }

Result<GroupTable> GroupTable::make(uint32_t roles, uint64_t group_bytes, For whom) {
    static_assert(sizeof(Group) == sizeof(uint64_t));
    const size_t stride = sizeof(Group) + roles * sizeof(uint64_t);
    const uint64_t room = sys::free_address_bytes() / kAddressesShare / stride;
    const uint64_t groups = std::min(kStoreBytesMax / group_bytes, room);
    const size_t bytes = round_up(groups * stride, kOsPageBytes);
    HANARE_TRY_ASSIGN(auto memory, whom == For::kProcess
                                       ? sys::Mapping::reserve(bytes, kOsPageBytes)
                                       : sys::Mapping::reserve_shared(bytes));
    return GroupTable(std::move(memory), stride, groups);
}

Group& GroupTable::group(uint64_t number) const noexcept {
    return *reinterpret_cast<Group*>(memory_.address() + number * stride_);
}

}  // namespace hanare::compose
