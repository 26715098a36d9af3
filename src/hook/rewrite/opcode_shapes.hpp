// SPDX-License-Identifier: Apache-2.0
//
// What follows an opcode, as tables: which opcodes have a ModRM byte, an immediate, a distance.
// Source: Intel SDM volume 2, appendix A.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace hanare::hook::opcodes {

// What follows an opcode.
enum Shape : uint8_t {
    kBad = 0,
    kNone,   // nothing
    kI8,     // an immediate of 1 byte
    kI16,    // 2 bytes
    kI24,    // 2 and 1 (enter)
    kIz,     // 4 bytes, 2 with prefix 66
    kIv,     // as kIz, 8 bytes with REX.W (mov)
    kMoffs,  // an address of 8 bytes, 4 with prefix 67
    kRel8,   // a distance of 1 byte
    kRel32,  // 4 bytes
    kM,      // ModRM
    kMI8,    // ModRM and an immediate
    kMIz,
    kMTest8,  // group 3: an immediate for /0 and /1 only
    kMTestz,
};

struct Row {
    uint8_t first, last;
    Shape shape;
};

template <size_t kRows>
constexpr std::array<uint8_t, 256> table_of(const Row (&rows)[kRows]) {
    std::array<uint8_t, 256> table = {};
    for (const Row& row : rows) {
        for (unsigned opcode = row.first; opcode <= row.last; ++opcode) table[opcode] = row.shape;
    }
    return table;
}

// One byte.  Prefixes and the escapes 0F, 62, C4 and C5 never reach the table.
inline constexpr std::array<uint8_t, 256> kPrimary = [] {
    auto table = table_of({
        {0x50, 0x5f, kNone}, {0x63, 0x63, kM},     {0x68, 0x68, kIz},     {0x69, 0x69, kMIz},
        {0x6a, 0x6a, kI8},   {0x6b, 0x6b, kMI8},   {0x6c, 0x6f, kNone},   {0x70, 0x7f, kRel8},
        {0x80, 0x80, kMI8},  {0x81, 0x81, kMIz},   {0x83, 0x83, kMI8},    {0x84, 0x8f, kM},
        {0x90, 0x99, kNone}, {0x9b, 0x9f, kNone},  {0xa0, 0xa3, kMoffs},  {0xa4, 0xa7, kNone},
        {0xa8, 0xa8, kI8},   {0xa9, 0xa9, kIz},    {0xaa, 0xaf, kNone},   {0xb0, 0xb7, kI8},
        {0xb8, 0xbf, kIv},   {0xc0, 0xc1, kMI8},   {0xc2, 0xc2, kI16},    {0xc3, 0xc3, kNone},
        {0xc6, 0xc6, kMI8},  {0xc7, 0xc7, kMIz},   {0xc8, 0xc8, kI24},    {0xc9, 0xc9, kNone},
        {0xca, 0xca, kI16},  {0xcb, 0xcc, kNone},  {0xcd, 0xcd, kI8},     {0xcf, 0xcf, kNone},
        {0xd0, 0xd3, kM},    {0xd7, 0xd7, kNone},  {0xd8, 0xdf, kM},      {0xe0, 0xe3, kRel8},
        {0xe4, 0xe7, kI8},   {0xe8, 0xe9, kRel32}, {0xeb, 0xeb, kRel8},   {0xec, 0xef, kNone},
        {0xf1, 0xf1, kNone}, {0xf4, 0xf5, kNone},  {0xf6, 0xf6, kMTest8}, {0xf7, 0xf7, kMTestz},
        {0xf8, 0xfd, kNone}, {0xfe, 0xff, kM},
    });
    for (unsigned row = 0; row < 0x40; row += 8) {  // add, or, adc, sbb, and, sub, xor, cmp
        for (unsigned form = 0; form < 4; ++form) table[row + form] = kM;
        table[row + 4] = kI8;
        table[row + 5] = kIz;
    }
    return table;
}();

// 0F and one byte.
inline constexpr std::array<uint8_t, 256> kSecondary = table_of({
    {0x00, 0x03, kM},    {0x05, 0x09, kNone}, {0x0b, 0x0b, kNone}, {0x0d, 0x0d, kM},
    {0x0e, 0x0e, kNone}, {0x0f, 0x0f, kMI8},  {0x10, 0x23, kM},    {0x28, 0x2f, kM},
    {0x30, 0x35, kNone}, {0x37, 0x37, kNone}, {0x40, 0x6f, kM},    {0x70, 0x73, kMI8},
    {0x74, 0x76, kM},    {0x77, 0x77, kNone}, {0x78, 0x7f, kM},    {0x80, 0x8f, kRel32},
    {0x90, 0x9f, kM},    {0xa0, 0xa2, kNone}, {0xa3, 0xa3, kM},    {0xa4, 0xa4, kMI8},
    {0xa5, 0xa5, kM},    {0xa8, 0xaa, kNone}, {0xab, 0xab, kM},    {0xac, 0xac, kMI8},
    {0xad, 0xb9, kM},    {0xba, 0xba, kMI8},  {0xbb, 0xc1, kM},    {0xc2, 0xc2, kMI8},
    {0xc3, 0xc3, kM},    {0xc4, 0xc6, kMI8},  {0xc7, 0xc7, kM},    {0xc8, 0xcf, kNone},
    {0xd0, 0xff, kM},
});

}  // namespace hanare::hook::opcodes
