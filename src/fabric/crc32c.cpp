// SPDX-License-Identifier: Apache-2.0
#include "fabric/crc32c.hpp"

#include <array>
#include <cstring>

#include "sys/processor.hpp"

namespace hanare::fabric {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // reflected

constexpr std::array<uint32_t, 256> make_table() {
    std::array<uint32_t, 256> table{};
    for (uint32_t byte = 0; byte < table.size(); ++byte) {
        uint32_t remainder = byte;
        for (int bit = 0; bit < 8; ++bit) {
            remainder = (remainder >> 1) ^ ((remainder & 1) != 0 ? kPolynomial : 0);
        }
        table[byte] = remainder;
    }
    return table;
}
constexpr std::array<uint32_t, 256> kTable = make_table();

[[gnu::target("sse4.2")]] uint32_t crc32c_sse42(uint32_t before, const std::byte* memory,
                                                size_t bytes) noexcept {
    uint64_t state = ~before;
    for (; bytes >= sizeof(uint64_t); bytes -= sizeof(uint64_t), memory += sizeof(uint64_t)) {
        uint64_t word;
        std::memcpy(&word, memory, sizeof word);
        state = __builtin_ia32_crc32di(state, word);
    }
    auto rest = static_cast<uint32_t>(state);
    for (; bytes > 0; --bytes, ++memory) {
        rest = __builtin_ia32_crc32qi(rest, static_cast<uint8_t>(*memory));
    }
    return ~rest;
}

}  // namespace

uint32_t crc32c_portable(uint32_t before, const std::byte* memory, size_t bytes) noexcept {
    uint32_t state = ~before;
    for (; bytes > 0; --bytes, ++memory) {
        state = (state >> 8) ^ kTable[(state ^ static_cast<uint8_t>(*memory)) & 0xff];
    }
    return ~state;
}

uint32_t crc32c(uint32_t before, const std::byte* memory, size_t bytes) noexcept {
    return sys::has_sse42() ? crc32c_sse42(before, memory, bytes)
                            : crc32c_portable(before, memory, bytes);
}

}  // namespace hanare::fabric
