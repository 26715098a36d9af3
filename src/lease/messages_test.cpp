// SPDX-License-Identifier: Apache-2.0
#include "lease/messages.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include <gtest/gtest.h>

namespace hanare::lease {
namespace {

Question named(std::string_view name) {
    Question question = {.what = Ask::kOpen, .lease = {}};
    std::ranges::copy(name, question.client);
    return question;
}

TEST(Messages, QuestionsAreKnown) {
    for (uint16_t what = 1; what <= 8; ++what) {
        EXPECT_TRUE(is_sound({.what = static_cast<Ask>(what), .lease = {}}));
    }
    for (const int what : {0, 9, 0x100, 0xffff}) {
        EXPECT_FALSE(is_sound({.what = static_cast<Ask>(what), .lease = {}})) << what;
    }
    EXPECT_TRUE(is_sound({.what = Ask::kJoin, .first = kMembersMax, .lease = {}}));
    EXPECT_FALSE(is_sound({.what = Ask::kJoin, .first = kMembersMax + 1, .lease = {}}));
}

TEST(Messages, NamesArePrintable) {
    for (const char* name : {"", "x", "a name ~!", "12345678901234567890123456789012"}) {
        EXPECT_TRUE(is_sound(named(name))) << name;
    }
    for (const char* name : {"\x1b[2J", "a\n", "\x7f", "\xc3\xa4"}) {
        EXPECT_FALSE(is_sound(named(name))) << name;
    }
    Question hidden = named("name");
    hidden.client[kClientNameBytes - 1] = 'x';
    EXPECT_FALSE(is_sound(hidden));
}

}  // namespace
}  // namespace hanare::lease
