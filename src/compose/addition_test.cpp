// SPDX-License-Identifier: Apache-2.0
#include "compose/addition.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hanare::compose {
namespace {

TEST(Addition, IsOneAtATime) {
    Addition addition;
    EXPECT_STREQ(addition.outcome(), "");
    EXPECT_EQ(addition.wanted(), "");
    EXPECT_TRUE(addition.ask("tcp://a"));
    EXPECT_FALSE(addition.ask("tcp://b"));
    EXPECT_EQ(addition.outcome(), nullptr);
    EXPECT_EQ(addition.wanted(), "tcp://a");
    addition.finish("nobody is there");
    EXPECT_STREQ(addition.outcome(), "nobody is there");
    EXPECT_TRUE(addition.ask("tcp://b"));
    addition.finish("");
    EXPECT_STREQ(addition.outcome(), "");
}

TEST(Addition, CutsNothingThatMatters) {
    Addition addition;
    EXPECT_FALSE(addition.ask(""));
    EXPECT_FALSE(addition.ask(std::string(Addition::kTextBytes, 'x')));
    EXPECT_TRUE(addition.ask(std::string(Addition::kTextBytes - 1, 'x')));
    EXPECT_EQ(addition.wanted().size(), Addition::kTextBytes - 1);
    addition.finish(std::string(2 * Addition::kTextBytes, 'y'));
    EXPECT_EQ(std::string(addition.outcome()).size(), Addition::kTextBytes - 1);
}

}  // namespace
}  // namespace hanare::compose
