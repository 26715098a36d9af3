// SPDX-License-Identifier: Apache-2.0
#include "base/units.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hanare {
namespace {

TEST(ParseSize, AcceptsWhatPeopleWrite) {
    const struct {
        const char* text;
        uint64_t bytes;
    } cases[] = {
        {"1", 1},
        {"4096", 4096},
        {"4096B", 4096},
        {"4k", 4 * kKiB},
        {"4K", 4 * kKiB},
        {"64KB", 64 * kKiB},
        {"512M", 512 * kMiB},
        {"512MiB", 512 * kMiB},
        {"2G", 2 * kGiB},
        {"2GiB", 2 * kGiB},
        {"1.5GiB", 3 * kGiB / 2},
        {"0.5K", 512},
        {"007", 7},
        {"1T", 1024 * kGiB},
        {"4P", 4096 * 1024 * kGiB},
        {"8191P", uint64_t{8191} << 50},
        {"9007199254740992", uint64_t{1} << 53},
        {"9007199254740993", (uint64_t{1} << 53) + 1},
        {"8999999999999999K", 8999999999999999 << 10},
    };
    for (const auto& [text, bytes] : cases) {
        const Result<uint64_t> result = parse_size("local", text);
        ASSERT_TRUE(result.has_value()) << text << ": " << result.error().text;
        EXPECT_EQ(*result, bytes) << text;
    }
}

TEST(ParseSize, RefusesEverythingElseAndSaysSo) {
    const std::string long_text(5000, '9');
    const std::string with_zero("4K\0", 3);
    const std::string_view bad[] = {
        "",      " ",    "0",    "0K",    "-1",    "-4K",  "+4K",    " 4K",     "4K ",
        "4 K",   "K",    "B",    "iB",    "abc",   "4Q",   "4KK",    "4KiBs",   "4iB",
        "4Kib4", "1e3",  "0x10", "1,5G",  "1..5G", ".",    "..",     "inf",     "nan",
        "-inf",  "1/2G", "50%",  "8192P", "8E",    "9e99", "0.0001", "0.9",     "99999999T",
        "4\n",   "4K4",  "auto", "-0",    "--4",   "４K",  "1_000",  long_text, with_zero,
    };
    for (const std::string_view text : bad) {
        const Result<uint64_t> result = parse_size("flag --local", text);
        ASSERT_FALSE(result.has_value()) << "'" << text << "' became " << *result;
        EXPECT_EQ(result.error().status, HANARE_STATUS_INVALID_ARGUMENT);
        const std::string message = result.error().text;
        EXPECT_TRUE(message.starts_with("flag --local: '")) << message;
        EXPECT_NE(message.find("allowed is a positive size"), std::string::npos) << message;
    }
}

TEST(FormatSize, UsesTheLargestUnitThatKeepsOne) {
    EXPECT_EQ(format_size(0), "0 B");
    EXPECT_EQ(format_size(1023), "1023 B");
    EXPECT_EQ(format_size(kKiB), "1 KiB");
    EXPECT_EQ(format_size(1536), "1.50 KiB");
    EXPECT_EQ(format_size(512 * kMiB), "512 MiB");
    EXPECT_EQ(format_size(21 * kGiB + kGiB / 2), "21.5 GiB");
    EXPECT_EQ(format_size(UINT64_MAX), "16 EiB");
}

TEST(Rounding, GoesToMultiplesOfThePower) {
    EXPECT_EQ(round_up(0, 4096), 0u);
    EXPECT_EQ(round_up(1, 4096), 4096u);
    EXPECT_EQ(round_up(4096, 4096), 4096u);
    EXPECT_EQ(round_down(4095, 4096), 0u);
    EXPECT_EQ(round_down(8191, 4096), 4096u);
    EXPECT_TRUE(is_power_of_two(1));
    EXPECT_FALSE(is_power_of_two(0));
    EXPECT_FALSE(is_power_of_two(12288));
}

}  // namespace
}  // namespace hanare
