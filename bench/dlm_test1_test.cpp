// SPDX-License-Identifier: Apache-2.0
#include "bench/dlm_test1_report.hpp"

#include <gtest/gtest.h>

#include "base/units.hpp"

namespace hanare::bench {
namespace {

// The paper's own: 32 GiB of ints in blocks of 32 KiB.
Test1Case paper_case(uint64_t local_blocks) {
    Test1Case which;
    which.setup.bytes = 32 * kGiB;
    which.setup.memory.block_bytes = 32 * kKiB;
    which.setup.local_blocks = local_blocks;
    for (int pass = 0; pass < kTest1Passes; ++pass) {
        const uint64_t swaps = test1_expected_swaps(which.setup, pass);
        which.counts[static_cast<size_t>(pass)] = {1.0, swaps, swaps, swaps};
    }
    return which;
}

TEST(DlmTest1, SwapsAndAccessesAreThoseOfThePaper) {
    const Test1Setup setup = paper_case(1'000'000).setup;
    ASSERT_EQ(setup.blocks(), 1'048'576u);
    EXPECT_EQ(test1_expected_swaps(setup, 0), 48'576u);
    for (const int pass : {1, 2}) EXPECT_EQ(test1_expected_swaps(setup, pass), setup.blocks());
    EXPECT_EQ(test1_accesses(1, setup.bytes) / setup.blocks(), 8u);
    EXPECT_EQ(test1_accesses(2, setup.bytes) / setup.blocks(), 8192u);
    const Test1Setup fits = paper_case(1'048'576).setup;
    for (int pass = 0; pass < kTest1Passes; ++pass) EXPECT_EQ(test1_expected_swaps(fits, pass), 0u);
}

TEST(DlmTest1, EveryCountMustAgree) {
    EXPECT_TRUE(check_test1_swaps(paper_case(1'000'000)));
    for (size_t pass = 0; pass < kTest1Passes; ++pass) {
        for (uint64_t Test1Pass::* count :
             {&Test1Pass::swaps, &Test1Pass::evictions_inline, &Test1Pass::given_up}) {
            Test1Case wrong = paper_case(1'000'000);
            wrong.counts[pass].*count += 1;
            EXPECT_FALSE(check_test1_swaps(wrong));
        }
    }
}

}  // namespace
}  // namespace hanare::bench
