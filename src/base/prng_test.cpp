// SPDX-License-Identifier: Apache-2.0
//
// Expected words come from the algorithms' definitions, computed apart from this code.
#include "base/prng.hpp"

#include <gtest/gtest.h>

namespace hanare {
namespace {

TEST(Prng, MatchesTheReference) {
    uint64_t state = 0;
    EXPECT_EQ(splitmix64(state), 0xe220a8397b1dcdafu);
    EXPECT_EQ(splitmix64(state), 0x6e789e6aa1b965f4u);
    EXPECT_EQ(splitmix64(state), 0x06c45d188009454fu);
    Prng random(0);
    EXPECT_EQ(random.next(), 0x99ec5f36cb75f2b4u);
    EXPECT_EQ(random.next(), 0xbf6e1f784956452au);
    EXPECT_EQ(random.next(), 0x1a5f849d4933e6e0u);
}

TEST(Prng, SameSeedSameSequence) {
    Prng a(7);
    Prng b(7);
    Prng c(8);
    bool differs = false;
    for (int i = 0; i < 100; ++i) {
        const uint64_t word = a.next();
        ASSERT_EQ(word, b.next());
        differs |= word != c.next();
    }
    EXPECT_TRUE(differs);
}

// With 80000 draws over 8 bins, 9400 is six standard deviations away from 10000.
TEST(Prng, BelowStaysBelowAndIsEven) {
    Prng random(1);
    int seen[8] = {};
    for (int i = 0; i < 80000; ++i) {
        const uint64_t value = random.below(8);
        ASSERT_LT(value, 8u);
        ++seen[value];
    }
    for (const int count : seen) {
        EXPECT_GT(count, 9400);
        EXPECT_LT(count, 10600);
    }
    EXPECT_EQ(random.below(1), 0u);
}

TEST(Prng, UnitIsHalfOpen) {
    Prng random(2);
    double sum = 0;
    for (int i = 0; i < 100000; ++i) {
        const double value = random.unit();
        ASSERT_GE(value, 0.0);
        ASSERT_LT(value, 1.0);
        sum += value;
    }
    EXPECT_NEAR(sum / 100000, 0.5, 0.01);
}

}  // namespace
}  // namespace hanare
