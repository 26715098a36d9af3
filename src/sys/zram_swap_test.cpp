// SPDX-License-Identifier: Apache-2.0
#include "sys/zram_swap.hpp"

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "base/units.hpp"
#include "sys/text_file.hpp"

namespace hanare::sys {
namespace {

constexpr uint64_t kBytes = 8 * kMiB;

bool is_on(const std::string& path) {
    const auto swaps = read_text_file("/proc/swaps");
    return swaps && swaps->find(path + " ") != std::string::npos;
}

// The note of the process `pid`.
std::string note(const std::string& directory, pid_t pid) {
    return directory + "/hanare-" + std::to_string(pid) + ".zram";
}

class Zram : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = "/var/tmp/hanare-zram-test-" + std::to_string(getpid()) + "-XXXXXX";
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        directory_ = pattern;
    }
    void TearDown() override {
        remove_stale_zram_swap(directory_);
        EXPECT_EQ(rmdir(directory_.c_str()), 0) << "something was left in " << directory_;
    }
    std::string directory_;
};

TEST_F(Zram, LivesAsLongAsItsObject) {
    std::string path;
    {
        const auto swap = ZramSwap::create(directory_, kBytes);
        if (!swap) GTEST_SKIP() << swap.error().text;
        path = swap->path();
        EXPECT_TRUE(is_on(path));
        EXPECT_TRUE(swap->peak_bytes());
        EXPECT_EQ(remove_stale_zram_swap(directory_), 0) << "it is in use";
        EXPECT_TRUE(is_on(path));
    }
    EXPECT_FALSE(is_on(path));
    EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST_F(Zram, LeftoverOfAKilledProcessIsRemoved) {
    const pid_t child = fork();
    if (child == 0) {
        const auto swap = ZramSwap::create(directory_, kBytes);
        _exit(swap ? 0 : 1);  // without undoing it
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (status != 0) GTEST_SKIP() << "zram cannot be turned on here";
    const auto text = read_text_file(note(directory_, child));
    ASSERT_TRUE(text);
    const std::string path = text->substr(text->find('\n') + 1);
    EXPECT_TRUE(is_on(path));
    EXPECT_EQ(remove_stale_zram_swap(directory_), 1);
    EXPECT_FALSE(is_on(path));
    EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST_F(Zram, NotesOfAnotherBootAreOnlyDeleted) {
    auto swap = ZramSwap::create(directory_, kBytes);
    if (!swap) GTEST_SKIP() << swap.error().text;
    std::ofstream(note(directory_, 1)) << "another-boot\n" << swap->path();
    std::ofstream(note(directory_, 2)) << "nonsense";
    EXPECT_EQ(remove_stale_zram_swap(directory_), 0);
    EXPECT_TRUE(is_on(swap->path()));
    EXPECT_NE(access(note(directory_, 1).c_str(), F_OK), 0);
    EXPECT_TRUE(swap->remove());
}

TEST_F(Zram, RefusalLeavesNothing) {
    EXPECT_FALSE(ZramSwap::create("/nonexistent-directory", kBytes));
}

}  // namespace
}  // namespace hanare::sys
