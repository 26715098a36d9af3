// SPDX-License-Identifier: Apache-2.0
#include "config/nearest.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hanare::config {
namespace {

constexpr std::string_view kKnown[] = {"block", "store", "read_ahead", "io"};

TEST(Nearest, FindsSlipsOfThePen) {
    EXPECT_EQ(nearest("blok", kKnown), "block");
    EXPECT_EQ(nearest("BLOCK", kKnown), "block");
    EXPECT_EQ(nearest("stor", kKnown), "store");
}

TEST(Nearest, StaysSilentWhenNothingIsNear) {
    EXPECT_EQ(nearest("", kKnown), "");
    EXPECT_EQ(nearest("memory", kKnown), "");
    EXPECT_EQ(nearest(std::string(100000, 'b'), kKnown), "");
    EXPECT_EQ(suggestion("xyzzy", kKnown), "");
    EXPECT_EQ(suggestion("readahead", kKnown), "; did you mean 'read_ahead'?");
}

TEST(Quoted, IsShortAndPrintable) {
    EXPECT_EQ(in_quotes("a\nb\x1b\x7f"),
              "'a?b?"
              "?'");
    EXPECT_EQ(in_quotes(std::string(61, 'x')), "'" + std::string(60, 'x') + "...'");
    EXPECT_EQ(in_quotes(std::string(60, 'x')), "'" + std::string(60, 'x') + "'");
}

}  // namespace
}  // namespace hanare::config
