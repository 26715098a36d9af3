// SPDX-License-Identifier: Apache-2.0
#include "config/file.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hanare::config {
namespace {

std::string error_of(std::string_view toml) {
    const auto entries = parse_file_text(toml, "x.toml");
    return entries ? "no error" : entries.error().text;
}

TEST(ConfigFile, ValuesBecomeText) {
    const auto entries = parse_file_text(
        "# K\xc3\xb6ln\n"
        "store = \"file:/daten/K\xc3\xb6ln \\\"x\\\"\"  # '\xc4\xb9\n"
        "read_ahead = 32\n"
        "direct = true\n"
        "engine = 'auto'\n",
        "x.toml");
    ASSERT_TRUE(entries.has_value()) << entries.error().text;
    ASSERT_EQ(entries->size(), 4u);
    std::string all;
    for (const FileEntry& entry : *entries) {
        all += std::to_string(entry.line) + " " + entry.key + "=" + entry.text + "\n";
    }
    EXPECT_NE(all.find("2 store=file:/daten/K\xc3\xb6ln \"x\"\n"), std::string::npos) << all;
    EXPECT_NE(all.find("3 read_ahead=32\n"), std::string::npos) << all;
    EXPECT_NE(all.find("4 direct=true\n"), std::string::npos) << all;
    EXPECT_NE(all.find("5 engine=auto\n"), std::string::npos) << all;
}

TEST(ConfigFile, EmptyIsFine) {
    for (const char* text : {"", "\n\n", "# nothing", "\xef\xbb\xbf# byte order mark\n"}) {
        EXPECT_EQ(error_of(text), "no error");
    }
}

TEST(ConfigFile, RefusesOtherTypes) {
    for (const char* text : {"a = 1.5", "a.b = 1", "a = 2020-01-01", "a = 07:32:00", "a = inf"}) {
        EXPECT_NE(error_of(text).find("x.toml:1: the value of 'a' is neither"), std::string::npos)
            << text << ": " << error_of(text);
    }
}

TEST(ConfigFile, RefusesWhatIsNotToml) {
    for (const char* text : {"a", "a =", "= 1", "a = 1 2", "a = 1\na = 2"}) {
        EXPECT_NE(error_of(text).find("not valid TOML"), std::string::npos) << error_of(text);
    }
}

TEST(ConfigFile, RefusesControlCharacters) {
    for (const std::string_view text : {"\x01", "a = 'x\x7f'", "# \x0b", "a = 1\r\r"}) {
        EXPECT_EQ(error_of(text), "file x.toml:1: a control character is not allowed");
    }
    EXPECT_EQ(error_of("a\t= 1\r\nb = 2\r\n"), "no error");
}

TEST(ConfigFile, RefusesTablesAndArrays) {
    for (const char* text : {"[a]", " [[a]]", "a = [1]", "a = {b = 1}", "[[/INNF", "a = 'x' ["}) {
        EXPECT_EQ(error_of(text), "file x.toml:1: a table or an array is not allowed") << text;
    }
    EXPECT_EQ(error_of("a = '[x]{y}'  # [z]"), "no error");
}

// toml++ 3.3 has undefined behaviour on these; found by tests/fuzz/config_fuzz.
TEST(ConfigFile, NonAsciiOutsideQuotesIsRefused) {
    EXPECT_EQ(error_of("a = 1\nmni\xc4\xb9m = 1"),
              "file x.toml:2: a non-ASCII character outside quotes is not allowed");
    EXPECT_EQ(error_of("a = 'x' \xc4\xb9"),
              "file x.toml:1: a non-ASCII character outside quotes is not allowed");
    EXPECT_EQ(error_of("n=5O`\"\xef\xbb\xbd\""),
              "file x.toml:1: a quote elsewhere than after the first = is not allowed");
    EXPECT_EQ(error_of("E=-2:='\xef\xba\xbf'"),
              "file x.toml:1: a quote elsewhere than after the first = is not allowed");
    EXPECT_EQ(error_of("a = 'x"), "file x.toml:1: text without a closing quote is not allowed");
    EXPECT_EQ(error_of("a = \"x\\\""),
              "file x.toml:1: text without a closing quote is not allowed");
    EXPECT_EQ(error_of("a = \"\"\"x\"\"\""), "file x.toml:1: multi-line text is not allowed");
    EXPECT_EQ(error_of("a = '''x'''"), "file x.toml:1: multi-line text is not allowed");
}

}  // namespace
}  // namespace hanare::config
