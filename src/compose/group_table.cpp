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

bool Group::try_enter() const noexcept {
    uint32_t seen = gate_->load(std::memory_order_relaxed);
    while ((seen & kClosed) == 0) {
        if (gate_->compare_exchange_weak(seen, seen + 1, std::memory_order_acquire)) return true;
    }
    return false;
}

void Group::enter() const noexcept {
    while (!try_enter()) {
        const uint32_t seen = gate_->load(std::memory_order_relaxed);
        if ((seen & kClosed) != 0) sys::futex_wait(*gate_, seen);
    }
}

void Group::leave() const noexcept {
    if (gate_->fetch_sub(1, std::memory_order_release) == kClosed + 1) sys::futex_wake_all(*gate_);
}

bool Group::begin_to_close() const noexcept {
    return (gate_->fetch_or(kClosed, std::memory_order_acquire) & kClosed) == 0;
}

bool Group::await_alone(int timeout_ms) const noexcept {
    const uint64_t end_ns = sys::now_ns() + static_cast<uint64_t>(timeout_ms) * kNsPerMs;
    for (;;) {
        const uint32_t seen = gate_->load(std::memory_order_acquire);
        if (seen == kClosed) return true;
        const uint64_t now_ns = sys::now_ns();
        if (now_ns >= end_ns) return false;
        sys::futex_wait(*gate_, seen, static_cast<int>((end_ns - now_ns) / kNsPerMs) + 1);
    }
}

bool Group::finish_closing(int timeout_ms) const noexcept {
    if (await_alone(timeout_ms)) return true;
    open();
    return false;
}

void Group::open() const noexcept {
    gate_->fetch_and(~kClosed, std::memory_order_release);
    sys::futex_wake_all(*gate_);
}

std::optional<Place> Group::place(uint32_t role) const noexcept {
    const uint64_t seen = word(role).load(std::memory_order_acquire);
    if ((seen & kIsThere) == 0) return std::nullopt;
    return Place{static_cast<uint32_t>(seen >> kMemberShift & kMemberMask), (seen & kChunkMask)
                                                                                << kChunkShift};
}

void Group::set_place(uint32_t role, Place place) const noexcept {
    word(role).store(word_of(place), std::memory_order_release);
}

void Group::offer_place(uint32_t role, Place place) const noexcept {
    uint64_t none = 0;
    word(role).compare_exchange_strong(none, word_of(place));
}

void Group::clear_place(uint32_t role) const noexcept {
    word(role).store(0, std::memory_order_relaxed);
}

Result<GroupTable> GroupTable::make(uint32_t roles, uint64_t group_bytes, For whom) {
    using Gate = std::atomic<uint32_t>;
    using Word = std::atomic<uint64_t>;
    const size_t words_of_group = 1 + roles;
    const size_t stride = sizeof(Gate) + words_of_group * sizeof(Word);
    const uint64_t room = sys::free_address_bytes() / kAddressesShare / stride;
    const uint64_t groups = std::min(kStoreBytesMax / group_bytes, room);
    const auto table = [groups](size_t bytes_of_group, For users) {
        const size_t bytes = round_up(groups * bytes_of_group, kOsPageBytes);
        return users == For::kProcess ? sys::Mapping::reserve(bytes, kOsPageBytes)
                                      : sys::Mapping::reserve_shared(bytes);
    };
    HANARE_TRY_ASSIGN(auto gates, table(sizeof(Gate), For::kProcess));
    HANARE_TRY_ASSIGN(auto words, table(words_of_group * sizeof(Word), whom));
    return GroupTable(std::move(gates), std::move(words), words_of_group, groups);
}

Group GroupTable::group(uint64_t number) const noexcept {
    auto* const gates = reinterpret_cast<std::atomic<uint32_t>*>(gates_.address());
    auto* const words = reinterpret_cast<std::atomic<uint64_t>*>(words_.address());
    return {number, gates[number], words + number * words_of_group_};
}

}  // namespace hanare::compose
