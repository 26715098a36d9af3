// SPDX-License-Identifier: Apache-2.0
#include "sys/swap_file.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
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

class Swap : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = "/var/tmp/hanare-swap-test-" + std::to_string(getpid()) + "-XXXXXX";
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        directory_ = pattern;
    }
    void TearDown() override {
        remove_stale_swap_files(directory_);
        EXPECT_EQ(rmdir(directory_.c_str()), 0) << "something was left in " << directory_;
    }
    std::string directory_;
};

TEST_F(Swap, LivesAsLongAsItsObject) {
    std::string path;
    {
        const auto file = SwapFile::create(directory_, kBytes);
        if (!file) GTEST_SKIP() << file.error().text;
        path = file->path();
        EXPECT_TRUE(is_on(path));
        EXPECT_EQ(remove_stale_swap_files(directory_), 0) << "it is in use";
        EXPECT_TRUE(is_on(path));
    }
    EXPECT_FALSE(is_on(path));
    EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST_F(Swap, LeftoverOfAKilledProcessIsRemoved) {
    const pid_t child = fork();
    if (child == 0) {
        const auto file = SwapFile::create(directory_, kBytes);
        _exit(file ? 0 : 1);  // without undoing it
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (status != 0) GTEST_SKIP() << "swap files cannot be turned on here";
    const std::string path = directory_ + "/hanare-" + std::to_string(child) + ".swap";
    EXPECT_TRUE(is_on(path));
    EXPECT_EQ(remove_stale_swap_files(directory_), 1);
    EXPECT_FALSE(is_on(path));
    EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST_F(Swap, RefusalLeavesNothing) {
    EXPECT_FALSE(SwapFile::create(directory_, uint64_t{1} << 60));
    EXPECT_FALSE(SwapFile::create("/nonexistent-directory", kBytes));
}

TEST_F(Swap, TrafficCounts) {
    const auto traffic = swap_traffic();
    ASSERT_TRUE(traffic) << traffic.error().text;
}

}  // namespace
}  // namespace hanare::sys
