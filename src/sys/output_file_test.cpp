// SPDX-License-Identifier: Apache-2.0
#include "sys/output_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "sys/test_support.hpp"
#include "sys/text_file.hpp"

namespace hanare::sys {
namespace {

class Output : public ::testing::Test {
protected:
    ~Output() override {
        unlink(path_.c_str());
        unlink(link_.c_str());
        EXPECT_EQ(directory_.entry_count(), 0u) << "something was left behind";
    }

    void write_old() { std::ofstream(path_) << "old results, and longer than the new ones"; }
    std::string content() const { return read_text_file(path_).value_or("(none)"); }

    testing::TemporaryDirectory directory_;
    const std::string path_ = directory_.path() + "/results.json";
    const std::string link_ = directory_.path() + "/link";
};

TEST_F(Output, CreatesAndFills) {
    {
        auto file = OutputFile::open("--json", path_);
        ASSERT_TRUE(file) << file.error().text;
        EXPECT_EQ(content(), "");
        ASSERT_TRUE(file->replace("new"));
    }
    EXPECT_EQ(content(), "new");
}

TEST_F(Output, WhatIsThereStaysUntilThereAreResults) {
    write_old();
    {
        auto file = OutputFile::open("--json", path_);
        ASSERT_TRUE(file);
    }
    EXPECT_TRUE(content().starts_with("old results"));
    auto file = OutputFile::open("--json", path_);
    ASSERT_TRUE(file);
    EXPECT_TRUE(content().starts_with("old results"));
    ASSERT_TRUE(file->replace("new"));
    EXPECT_EQ(content(), "new");
}

TEST_F(Output, AnUnfilledNewFileVanishes) {
    {
        auto file = OutputFile::open("--json", path_);
        ASSERT_TRUE(file);
        const OutputFile moved = std::move(*file);
        EXPECT_EQ(content(), "");
    }
    EXPECT_EQ(content(), "(none)");
    ASSERT_EQ(symlink("results.json", link_.c_str()), 0);
    {
        const auto file = OutputFile::open("--json", link_);
        ASSERT_TRUE(file);
        EXPECT_EQ(content(), "");
    }
    EXPECT_EQ(content(), "(none)");
    EXPECT_EQ(unlink(link_.c_str()), 0) << "the link is not ours";
}

TEST_F(Output, AnotherFileOfThatNameStays) {
    {
        const auto file = OutputFile::open("--json", path_);
        ASSERT_TRUE(file);
        ASSERT_EQ(unlink(path_.c_str()), 0);
        write_old();
    }
    EXPECT_TRUE(content().starts_with("old results"));
}

TEST_F(Output, RefusesWhatCannotBeWritten) {
    for (const std::string& path :
         {std::string(), directory_.path(), directory_.path() + "/missing/file"}) {
        const auto file = OutputFile::open("--json", path);
        ASSERT_FALSE(file);
        EXPECT_EQ(file.error().status, HANARE_STATUS_INVALID_ARGUMENT);
        EXPECT_TRUE(std::string(file.error().text).starts_with("--json: ")) << file.error().text;
        EXPECT_NE(std::string(file.error().text).find(path), std::string::npos);
    }
}

TEST_F(Output, RefusesWhatThisUserMayNotWrite) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
    write_old();
    ASSERT_EQ(chmod(path_.c_str(), 0444), 0);
    EXPECT_EQ(testing::run_in_child([this]() -> std::string {
                  if (!testing::become_nobody()) return "cannot become nobody";
                  return OutputFile::open("--json", path_) ? "opened" : "";
              }),
              "");
}

TEST_F(Output, DevicesAreNotCut) {
    auto null = OutputFile::open("--json", "/dev/null");
    ASSERT_TRUE(null) << null.error().text;
    EXPECT_TRUE(null->replace("x"));
    auto full = OutputFile::open("--json", "/dev/full");
    ASSERT_TRUE(full) << full.error().text;
    const auto failed = full->replace("x");
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().os_errno, ENOSPC);
}

}  // namespace
}  // namespace hanare::sys
