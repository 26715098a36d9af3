// SPDX-License-Identifier: Apache-2.0
//
// How long an instruction is, for most of what compilers emit, in a fifth of the time that
// decode_instruction() takes: a program starts only after 25 000 instructions of its libraries have
// been stepped over.  Agrees with decode_instruction() wherever it answers; a test compares them on
// all code of this machine's libraries.
//
// Pure function; any thread; async-signal-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "hook/rewrite/opcode_shapes.hpp"

namespace hanare::hook {

struct InstructionStep {
    uint8_t bytes = 0;           // 0: not known here, decode_instruction() has to look
    uint8_t distance_bytes = 0;  // the last ones, of a jump or call; 0: it goes on behind itself
};

// Bytes that may be read from where the instruction begins.
inline constexpr size_t kStepReadBytes = 16;

namespace step {

// A row of the tables: the bytes of immediate or distance, and what else is known.
inline constexpr uint8_t kTailBytes = 0x07;
inline constexpr uint8_t kModRm = 0x08;
inline constexpr uint8_t kDistance = 0x10;
inline constexpr uint8_t kKnown = 0x20;
inline constexpr uint8_t kUnlike = 0x40;  // depends on what else there is

constexpr uint8_t row_of(uint8_t shape) {
    switch (shape) {
        case opcodes::kNone: return kKnown;
        case opcodes::kI8: return kKnown | 1;
        case opcodes::kIz:
        case opcodes::kIv: return kKnown | 4;
        case opcodes::kRel8: return kKnown | kDistance | 1;
        case opcodes::kRel32: return kKnown | kDistance | 4;
        case opcodes::kM: return kKnown | kModRm;
        case opcodes::kMI8: return kKnown | kModRm | 1;
        case opcodes::kMIz: return kKnown | kModRm | 4;
        default: return 0;
    }
}

// Without what ends the straight line, but for jumps and calls to a distance, and without groups
// whose members differ.
inline constexpr std::array<uint8_t, 256> kOneByte = [] {
    std::array<uint8_t, 256> rows = {};
    for (size_t opcode = 0; opcode < rows.size(); ++opcode) {
        rows[opcode] = row_of(opcodes::kPrimary[opcode]);
        if (opcode == 0xc7 || (opcode & 0xf8) == 0xb8) rows[opcode] |= kUnlike;
    }
    for (const size_t opcode :
         std::initializer_list<size_t>{0x8f, 0xc3, 0xcb, 0xcc, 0xcd, 0xcf, 0xf1, 0xf4, 0xff}) {
        rows[opcode] = 0;
    }
    return rows;
}();

inline constexpr std::array<uint8_t, 256> kTwoBytes = [] {
    std::array<uint8_t, 256> rows = {};
    for (size_t opcode = 0; opcode < rows.size(); ++opcode) {
        rows[opcode] = row_of(opcodes::kSecondary[opcode]);
    }
    for (const size_t opcode :
         std::initializer_list<size_t>{0x05, 0x07, 0x0b, 0x34, 0x35, 0x38, 0x3a, 0xb9, 0xff}) {
        rows[opcode] = 0;
    }
    return rows;
}();

// What follows a ModRM byte: an index and a displacement.
inline constexpr std::array<uint8_t, 256> kAfterModRm = [] {
    std::array<uint8_t, 256> bytes = {};
    for (unsigned byte = 0; byte < 0xc0; ++byte) {
        const unsigned mode = byte >> 6;
        const unsigned base = byte & 7;
        unsigned count = base == 4 ? 1 : 0;
        if (mode == 1) count += 1;
        if (mode == 2 || (mode == 0 && base == 5)) count += 4;
        bytes[byte] = static_cast<uint8_t>(count);
    }
    return bytes;
}();

constexpr bool is_prefix(uint8_t byte) {
    return byte == 0x64 || byte == 0x66 || byte == 0xf2 || byte == 0xf3;
}

}  // namespace step

// Shifts instead of loads, and branches only for what is rare: neither can be predicted here.
inline InstructionStep step_over(const uint8_t* place) noexcept {
    uint64_t rest = 0;
    std::memcpy(&rest, place, sizeof rest);
    unsigned bytes = 0;
    const auto skip = [&](unsigned count) {
        rest >>= 8 * count;
        bytes += count;
    };
    bool is_narrow = false;
    if (step::is_prefix(static_cast<uint8_t>(rest))) [[unlikely]] {
        is_narrow = static_cast<uint8_t>(rest) == 0x66;
        skip(1);
    }
    const auto rex = static_cast<uint8_t>(rest);
    const bool has_rex = (rex & 0xf0) == 0x40;
    skip(has_rex ? 1 : 0);
    const auto opcode = static_cast<uint8_t>(rest);
    skip(1);
    uint8_t row = step::kOneByte[opcode];
    if (opcode == 0x0f) [[unlikely]] {
        row = step::kTwoBytes[static_cast<uint8_t>(rest)];
        skip(1);
    }
    const auto modrm = static_cast<uint8_t>(rest);
    const uint8_t tail_bytes = row & step::kTailBytes;
    if ((row & step::kKnown) == 0 || (is_narrow && tail_bytes == 4)) return {};
    if ((row & step::kUnlike) != 0) [[unlikely]] {
        const bool begins_transaction = opcode == 0xc7 && modrm >= 0xf8;  // a jump
        const bool has_wide_immediate = opcode != 0xc7 && has_rex && (rex & 8) != 0;
        if (begins_transaction || has_wide_immediate) return {};
    }
    const bool is_indexed_without_base = (rest & 0x7c7) == 0x504;
    const unsigned behind = 1U + step::kAfterModRm[modrm] + (is_indexed_without_base ? 4 : 0);
    bytes += tail_bytes + ((row & step::kModRm) != 0 ? behind : 0);
    return {.bytes = static_cast<uint8_t>(bytes),
            .distance_bytes = (row & step::kDistance) != 0 ? tail_bytes : uint8_t{0}};
}

}  // namespace hanare::hook
