// SPDX-License-Identifier: Apache-2.0
#include "dsm/section_use.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace hanare::dsm {
namespace {

using Blocks = std::vector<uint32_t>;

Blocks begin(SectionUse& use) {
    const auto wanted = use.begin();
    return {wanted.begin(), wanted.end()};
}

// A section that needs these: it misses what was not fetched.  What was.
Blocks pass(SectionUse& use, const Blocks& needed) {
    const Blocks fetched = begin(use);
    std::vector<Miss> missed;
    for (const uint32_t block : needed) {
        if (std::ranges::find(fetched, block) == fetched.end()) missed.push_back({block, false});
    }
    use.end(missed);
    return fetched;
}

TEST(SectionUseTest, WhatIsMissedTwiceInARowIsFetched) {
    SectionUse use;
    EXPECT_EQ(pass(use, {7, 3}), Blocks());
    EXPECT_EQ(pass(use, {3, 7, 9}), Blocks());
    EXPECT_EQ(pass(use, {3, 7}), (Blocks{3, 7}));
    EXPECT_EQ(pass(use, {9, 3, 7}), (Blocks{3, 7})) << "not in a row";
    EXPECT_EQ(pass(use, {9, 3, 7}), (Blocks{3, 7}));
    EXPECT_EQ(pass(use, {9, 3, 7}), (Blocks{3, 7, 9}));
}

TEST(SectionUseTest, WhatGoesOverMemoryIsNotFetched) {
    SectionUse use;
    for (uint32_t block = 0; block < 1000; ++block) {
        EXPECT_EQ(pass(use, {block, block + 5000}), Blocks());
    }
}

// A miss brings the three blocks behind along, of which it is not known whether they are needed.
TEST(SectionUseTest, NeighboursThatCameAlongStayKnown) {
    SectionUse use;
    uint32_t misses = 0;
    uint32_t looks = 0;
    for (int section = 0; section < 1000; ++section) {
        Blocks there = begin(use);
        if (section > 100 && there.empty()) ++looks;
        std::vector<Miss> missed;
        for (uint32_t block = 8; block < 12; ++block) {
            if (std::ranges::find(there, block) != there.end()) continue;
            if (section > 100) ++misses;
            for (uint32_t i = 0; i < 4; ++i) {
                there.push_back(block + i);
                missed.push_back({block + i, i > 0});
            }
        }
        use.end(missed);
    }
    EXPECT_GT(looks, 0u);
    EXPECT_LE(misses, looks) << "one in each look, which brings the others";
}

TEST(SectionUseTest, WhatOnlyCameAlongIsNotFetched) {
    SectionUse use;
    for (int section = 0; section < 20; ++section) {
        const Blocks fetched = begin(use);
        EXPECT_TRUE(fetched.empty() || fetched == Blocks{5});
        const std::vector<Miss> missed = {{5, false}, {6, true}, {7, true}};
        use.end(std::span(missed).first(fetched.empty() ? 3 : 0));
    }
}

TEST(SectionUseTest, WhatIsNotNeededAnyMoreGoes) {
    SectionUse use;
    for (int i = 0; i < 3; ++i) pass(use, {1, 2, 3});
    uint32_t sections = 0;
    for (; pass(use, {2}) == Blocks({1, 2, 3}); ++sections) EXPECT_LT(sections, 20u);
    EXPECT_EQ(pass(use, {2}), Blocks{2}) << "seen in the section without";
}

TEST(SectionUseTest, ItLooksTheMoreSeldomTheLongerNothingElseIsNeeded) {
    SectionUse use;
    std::vector<int> looks;
    for (int i = 0; i < 2000; ++i) {
        if (pass(use, {4, 5}).empty()) looks.push_back(i);
    }
    ASSERT_GE(looks.size(), 8u);
    EXPECT_LE(looks.size(), 14u);
    EXPECT_EQ(looks.back() - looks[looks.size() - 2], static_cast<int>(SectionUse::kPauseMax));
}

TEST(SectionUseTest, ThereIsRoomForSoMany) {
    SectionUse use;
    Blocks many(2 * SectionUse::kBlocksMax);
    for (uint32_t i = 0; i < many.size(); ++i) many[i] = 2 * i;
    for (int i = 0; i < 2; ++i) pass(use, many);
    EXPECT_EQ(pass(use, many), Blocks(many.begin(), many.begin() + SectionUse::kBlocksMax));
}

TEST(RecentMissesTest, KnowsWhatCameSinceAMoment) {
    RecentMisses misses;
    for (uint32_t block = 0; block < 1000; ++block) misses.add({block, false});
    const uint64_t begin = misses.count();
    Miss found[4] = {};
    EXPECT_EQ(misses.since(begin, found), 0u);
    for (uint32_t block = 2000; block < 2003; ++block) misses.add({block, block == 2002});
    ASSERT_EQ(misses.since(begin, found), 3u);
    EXPECT_EQ(found[1].block, 2001u);
    EXPECT_FALSE(found[1].came_along);
    EXPECT_EQ(found[2].block, 2002u);
    EXPECT_TRUE(found[2].came_along);
    for (uint32_t block = 0; block < 1000; ++block) misses.add({block, false});
    EXPECT_EQ(misses.since(begin, found), 4u);
}

}  // namespace
}  // namespace hanare::dsm
