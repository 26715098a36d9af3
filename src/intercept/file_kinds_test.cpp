// SPDX-License-Identifier: Apache-2.0
#include "intercept/file_kinds.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

namespace hanare::intercept {
namespace {

uint64_t number(int file) { return static_cast<uint64_t>(file); }

TEST(FileKindsTest, PipesMaySleepAndFilesDoNot) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const int zeros = open("/dev/zero", O_RDONLY);
    const int program = open("/proc/self/exe", O_RDONLY);
    for (int time = 0; time < 2; ++time) {  // asked, remembered
        EXPECT_FALSE(transfers_promptly(number(ends[0])));
        EXPECT_TRUE(transfers_promptly(number(zeros)));
        EXPECT_TRUE(transfers_promptly(number(program)));
    }
    EXPECT_FALSE(transfers_promptly(1'000'000));
    EXPECT_FALSE(transfers_promptly(~uint64_t{0}));
    // The number of the file becomes that of a pipe.
    ASSERT_EQ(dup2(ends[0], program), program);
    EXPECT_TRUE(transfers_promptly(number(program))) << "nobody has told";
    forget_files(number(program), number(program));
    EXPECT_FALSE(transfers_promptly(number(program)));
    ASSERT_EQ(dup2(zeros, program), program);
    forget_files(0, ~uint64_t{0});
    EXPECT_TRUE(transfers_promptly(number(program)));
    for (const int file : {ends[0], ends[1], zeros, program}) close(file);
}

}  // namespace
}  // namespace hanare::intercept
