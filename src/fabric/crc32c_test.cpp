// SPDX-License-Identifier: Apache-2.0
#include "fabric/crc32c.hpp"

#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.hpp"

namespace hanare::fabric {
namespace {

uint32_t of(std::string_view text) {
    return crc32c(0, reinterpret_cast<const std::byte*>(text.data()), text.size());
}

// RFC 3720, appendix B.4, and the check value of the catalogues.
TEST(Crc32c, PublishedValues) {
    EXPECT_EQ(of("123456789"), 0xe3069283u);
    EXPECT_EQ(of(std::string(32, '\0')), 0x8a9136aau);
    EXPECT_EQ(of(std::string(32, '\xff')), 0x62a8ab43u);
    std::string rising(32, '\0');
    for (size_t i = 0; i < rising.size(); ++i) rising[i] = static_cast<char>(i);
    EXPECT_EQ(of(rising), 0x46dd794eu);
    EXPECT_EQ(of(""), 0u);
}

TEST(Crc32c, WithAndWithoutTheInstructionInPieces) {
    Prng prng(20011207);
    std::vector<std::byte> memory(4096);
    for (std::byte& byte : memory) byte = static_cast<std::byte>(prng.next());
    for (int i = 0; i < 500; ++i) {
        const size_t begin = prng.below(64);
        const size_t bytes = prng.below(memory.size() - begin);
        const size_t cut = prng.below(bytes + 1);
        const std::byte* const at = memory.data() + begin;
        const uint32_t whole = crc32c_portable(0, at, bytes);
        EXPECT_EQ(crc32c(0, at, bytes), whole);
        EXPECT_EQ(crc32c(crc32c(0, at, cut), at + cut, bytes - cut), whole);
    }
}

}  // namespace
}  // namespace hanare::fabric
