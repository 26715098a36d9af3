// SPDX-License-Identifier: Apache-2.0
#include "job/pieces.hpp"

#include <gtest/gtest.h>

#include "job/test_support.hpp"

namespace hanare::job {
namespace {

TEST(Pieces, JoinToWhatTheyWere) {
    for (const size_t size : {0, 1, 5, 6, 7, 32, 255, 256}) {
        std::vector<std::byte> bytes(size);
        for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(251 * i + 7);
        for (const size_t limit : {16, 17, 64, 1024}) {
            const auto pieces = pieces_of(bytes, limit);
            ASSERT_EQ(piece_count(pieces.front()), pieces.size());
            for (const std::string& piece : pieces) {
                EXPECT_LE(piece.size(), limit);
                EXPECT_EQ(piece.find_first_not_of("0123456789abcdef-"), piece.npos);
            }
            EXPECT_EQ(join_pieces(pieces), bytes);
        }
    }
    EXPECT_EQ(pieces_of(testing::bytes_of("\x01\xff"), 16), std::vector<std::string>{"1-01ff"});
}

TEST(Pieces, WhatIsNone) {
    for (const char* first : {"", "-", "x-00", "1", "0-", "1234-00", "-1-00", " 1-"}) {
        EXPECT_FALSE(join_pieces(std::vector<std::string>{first})) << first;
    }
    for (const char* first : {"1-0", "1-0g", "1-AB", "1-0 "}) {
        EXPECT_FALSE(join_pieces(std::vector<std::string>{first})) << first;
    }
    EXPECT_FALSE(join_pieces(std::vector<std::string>{"2-00"}));
    EXPECT_FALSE(join_pieces(std::vector<std::string>{"1-00", "00"}));
    EXPECT_FALSE(join_pieces({}));
}

}  // namespace
}  // namespace hanare::job
