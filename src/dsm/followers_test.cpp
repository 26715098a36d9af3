// SPDX-License-Identifier: Apache-2.0
#include "dsm/followers.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace hanare::dsm {
namespace {

std::vector<uint32_t> given(Followers& followers, uint32_t task, size_t most = SIZE_MAX) {
    std::vector<uint32_t> blocks;
    followers.give_to(task, [&](uint32_t block) {
        if (blocks.size() == most) return false;
        blocks.push_back(block);
        return true;
    });
    return blocks;
}

TEST(FollowersTest, WhoHasFetchedTwiceFollows) {
    Followers followers;
    followers.note_fetch(7, 3);
    followers.note_change(7);
    EXPECT_EQ(followers.next_task(0), Followers::kNobody);
    followers.note_fetch(7, 3);
    EXPECT_EQ(followers.next_task(0), 3u);
    EXPECT_EQ(followers.next_task(4), Followers::kNobody);
    EXPECT_TRUE(given(followers, 2).empty());
    EXPECT_EQ(given(followers, 3), std::vector<uint32_t>({7}));
}

TEST(FollowersTest, OnlyWhatHasChangedIsGiven) {
    Followers followers;
    for (int time = 0; time < 2; ++time) {
        followers.note_fetch(7, 3);
        followers.note_fetch(8, 3);
    }
    EXPECT_EQ(followers.next_task(0), Followers::kNobody);
    followers.note_change(8);
    EXPECT_EQ(given(followers, 3), std::vector<uint32_t>({8}));
    EXPECT_TRUE(given(followers, 3).empty());
}

TEST(FollowersTest, AfterSomeTimesItIsFetchedAgain) {
    Followers followers;
    followers.note_fetch(7, 3);
    for (const int times : {16, 32, 64, 128, 128}) {
        followers.note_fetch(7, 3);
        int given_times = 0;
        for (;; ++given_times) {
            followers.note_change(7);
            if (given(followers, 3).empty()) break;
        }
        EXPECT_EQ(given_times, times);
        EXPECT_EQ(followers.next_task(0), Followers::kNobody);
    }
}

TEST(FollowersTest, WhatHasNoRoomIsGivenNextTime) {
    Followers followers;
    for (uint32_t block = 0; block < 10; ++block) {
        followers.note_fetch(block, 1);
        followers.note_fetch(block, 1);
        followers.note_change(block);
    }
    EXPECT_EQ(given(followers, 1, 6).size(), 6u);
    EXPECT_EQ(given(followers, 1).size(), 4u);
}

TEST(FollowersTest, FourFollowABlockAndOthersFetch) {
    Followers followers;
    for (int time = 0; time < 3; ++time) {
        for (uint32_t task = 0; task < 4; ++task) followers.note_fetch(7, task);
    }
    for (int time = 0; time < 3; ++time) followers.note_fetch(7, 4);
    followers.note_change(7);
    for (uint32_t task = 0; task < 5; ++task) {
        EXPECT_EQ(given(followers, task).size(), task < 4 ? 1u : 0u) << task;
    }
}

TEST(FollowersTest, WhoDoesNotFollowMakesRoom) {
    Followers followers;
    for (uint32_t task = 0; task < 4; ++task) followers.note_fetch(7, task);
    for (int time = 0; time < 3; ++time) followers.note_fetch(7, 4);
    followers.note_change(7);
    EXPECT_EQ(given(followers, 4).size(), 1u);
}

}  // namespace
}  // namespace hanare::dsm
