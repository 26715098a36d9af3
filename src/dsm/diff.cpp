// SPDX-License-Identifier: Apache-2.0
#include "dsm/diff.hpp"

#include <bit>
#include <cstring>

#include "base/sanitizers.hpp"

namespace hanare::dsm {
namespace {

constexpr size_t kWordBytes = sizeof(uint64_t);
constexpr size_t kWordsPerLine = kLineBytes / kWordBytes;
constexpr size_t kHeadBytes = sizeof(uint32_t) + sizeof(uint64_t);

template <typename T>
T load(const std::byte* from) noexcept {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

template <typename T>
void store(std::byte* to, T value) noexcept {
    std::memcpy(to, &value, sizeof value);
}

// A bit for each byte that is not zero.
uint64_t bytes_set(uint64_t word) noexcept {
    constexpr uint64_t kLow = 0x0101010101010101;
    constexpr uint64_t kRest = 0x7f7f7f7f7f7f7f7f;
    constexpr uint64_t kGather = 0x0102040810204080;
    const uint64_t high = ((word & kRest) + kRest) | word;  // the highest bit of each such byte
    return (((high >> 7) & kLow) * kGather) >> 56;
}

// A bit for each byte of the line that differs.
uint64_t changed_bytes(const std::byte* before, const std::byte* now) noexcept {
    uint64_t changed = 0;
    for (size_t word = 0; word < kWordsPerLine; ++word) {
        const uint64_t difference =
            load<uint64_t>(before + word * kWordBytes) ^ load<uint64_t>(now + word * kWordBytes);
        changed |= bytes_set(difference) << (word * kWordBytes);
    }
    return changed;
}

bool is_line_equal(const std::byte* a, const std::byte* b) noexcept {
    uint64_t difference = 0;
    for (size_t word = 0; word < kWordsPerLine; ++word) {
        difference |= load<uint64_t>(a + word * kWordBytes) ^ load<uint64_t>(b + word * kWordBytes);
    }
    return difference == 0;
}

std::byte* put_line(const std::byte* line, uint64_t changed, std::byte* room) noexcept {
    store(room, changed);
    room += sizeof changed;
    if (changed == ~uint64_t{0}) {
        std::memcpy(room, line, kLineBytes);
        return room + kLineBytes;
    }
    for (; changed != 0; changed &= changed - 1) *room++ = line[std::countr_zero(changed)];
    return room;
}

// Only what has changed is written: what lies between may be changing by others now.
void apply_line(const std::byte* bytes, uint64_t changed, std::byte* line) noexcept {
    if (changed == ~uint64_t{0}) {
        std::memcpy(line, bytes, kLineBytes);
        return;
    }
    for (; changed != 0; changed &= changed - 1) line[std::countr_zero(changed)] = *bytes++;
}

}  // namespace

bool differs(const std::byte* one, const std::byte* other) noexcept {
    const base::UnseenByTsan unseen;
    for (size_t at = 0; at < kBlockBytes; at += kLineBytes) {
        if (!is_line_equal(one + at, other + at)) return true;
    }
    return false;
}

size_t make_diff(uint32_t block, const std::byte* twin, const std::byte* now,
                 std::byte* room) noexcept {
    std::byte* end = room + kHeadBytes;
    uint64_t lines = 0;
    for (size_t line = 0; line < kLinesPerBlock; ++line) {
        const size_t at = line * kLineBytes;
        if (is_line_equal(twin + at, now + at)) continue;
        lines |= uint64_t{1} << line;
        end = put_line(now + at, changed_bytes(twin + at, now + at), end);
    }
    if (lines == 0) return 0;
    store(room, block);
    store(room + sizeof block, lines);
    return static_cast<size_t>(end - room);
}

size_t apply_diff(std::span<const std::byte> bytes, BlockPlace place, void* context) noexcept {
    if (bytes.size() < kHeadBytes) return 0;
    std::byte* const block = place(context, load<uint32_t>(bytes.data()));
    if (block == nullptr) return 0;
    size_t at = kHeadBytes;
    for (auto lines = load<uint64_t>(bytes.data() + sizeof(uint32_t)); lines != 0;
         lines &= lines - 1) {
        if (bytes.size() - at < sizeof(uint64_t)) return 0;
        const auto changed = load<uint64_t>(bytes.data() + at);
        at += sizeof changed;
        const auto count = static_cast<size_t>(std::popcount(changed));
        if (bytes.size() - at < count) return 0;
        const auto line = static_cast<size_t>(std::countr_zero(lines));
        apply_line(bytes.data() + at, changed, block + line * kLineBytes);
        at += count;
    }
    return at;
}

uint32_t diff_block(std::span<const std::byte> diffs) noexcept {
    return diffs.size() < sizeof(uint32_t) ? UINT32_MAX : load<uint32_t>(diffs.data());
}

size_t diff_bytes(std::span<const std::byte> diffs) noexcept {
    size_t at = kHeadBytes;
    for (auto lines = load<uint64_t>(diffs.data() + sizeof(uint32_t)); lines != 0;
         lines &= lines - 1) {
        const auto changed = load<uint64_t>(diffs.data() + at);
        at += sizeof changed + static_cast<size_t>(std::popcount(changed));
    }
    return at;
}

}  // namespace hanare::dsm
