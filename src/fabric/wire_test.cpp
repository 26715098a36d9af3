// SPDX-License-Identifier: Apache-2.0
#include "fabric/wire.hpp"

#include <cstring>

#include <gtest/gtest.h>

namespace hanare::fabric {
namespace {

template <typename Header>
void check_seal(Header header) {
    seal(header);
    EXPECT_TRUE(is_sealed(header));
    for (size_t bit = 0; bit < 8 * sizeof header; ++bit) {
        unsigned char bytes[sizeof header];
        std::memcpy(bytes, &header, sizeof header);
        bytes[bit / 8] = static_cast<unsigned char>(bytes[bit / 8] ^ 1u << (bit % 8));
        Header changed;
        std::memcpy(&changed, bytes, sizeof changed);
        EXPECT_FALSE(is_sealed(changed)) << bit;
    }
}

TEST(Wire, EveryBitIsSealed) {
    check_seal(RequestHeader{.kind = Kind::kFetch, .width = 8, .bytes = 8, .operand = 3});
    check_seal(AnswerHeader{.kind = Kind::kGet, .status = -10, .value = 7, .sequence = 9});
}

TEST(Wire, OtherVersionsAreNotUnderstood) {
    RequestHeader header = {.version = kWireVersion + 1};
    seal(header);
    EXPECT_FALSE(is_sealed(header));
}

TEST(Wire, Plausible) {
    EXPECT_TRUE(is_plausible({.kind = Kind::kPut, .bytes = kRequestBytesMax}));
    EXPECT_FALSE(is_plausible({.kind = Kind::kPut, .bytes = kRequestBytesMax + 1}));
    EXPECT_TRUE(is_plausible({.kind = Kind::kGet, .bytes = 0}));
    EXPECT_FALSE(is_plausible({.kind = static_cast<Kind>(77)}));
    EXPECT_TRUE(is_plausible({.kind = Kind::kFetch, .width = 4, .bytes = 4}));
    EXPECT_FALSE(is_plausible({.kind = Kind::kFetch, .width = 4, .bytes = 8}));
    EXPECT_FALSE(is_plausible({.kind = Kind::kFetch, .width = 2, .bytes = 2}));
}

}  // namespace
}  // namespace hanare::fabric
