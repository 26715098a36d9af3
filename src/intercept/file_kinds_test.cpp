// SPDX-License-Identifier: Apache-2.0
#include "intercept/file_kinds.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

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
    begin_to_change_files(number(program), number(program));
    end_changing_files();
    EXPECT_FALSE(transfers_promptly(number(program)));
    ASSERT_EQ(dup2(zeros, program), program);
    begin_to_change_files(0, ~uint64_t{0});
    end_changing_files();
    EXPECT_TRUE(transfers_promptly(number(program)));
    for (const int file : {ends[0], ends[1], zeros, program}) close(file);
}

// Reads at offsets, all transfers.
std::pair<bool, bool> begins(int file) {
    consider_beginning(number(file));
    return {hook::hanare_hook_files[file] != 0, hook::hanare_hook_files[hook::kFiles + file] != 0};
}

TEST(FileKindsTest, TransfersBeginWhereThatDoesNoHarm) {
    constexpr std::pair kNone{false, false};
    constexpr std::pair kReads{true, false};
    constexpr std::pair kAll{true, true};
    char name[] = "/var/tmp/hanare-kinds-XXXXXX";
    const int regular = mkstemp(name);
    const int appended = open(name, O_RDWR | O_APPEND);
    const int direct = open(name, O_RDWR | O_DIRECT);
    unlink(name);
    const int zeros = open("/dev/zero", O_RDONLY);
    const int status = open("/proc/self/status", O_RDONLY);
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    // Of a file system that is not known to copy nothing is known.
    if (begins(regular) != kNone) {
        EXPECT_EQ(begins(regular), kReads);
        EXPECT_EQ(begins(appended), kReads);
    }
    EXPECT_EQ(begins(zeros), kAll);
    if (direct >= 0) {
        EXPECT_EQ(begins(direct), kNone);
    }
    EXPECT_EQ(begins(status), kNone);
    EXPECT_EQ(begins(ends[0]), kNone);
    // While a number changes nobody knows what it is; afterwards it is asked for again.
    begin_to_change_files(number(zeros), number(zeros));
    EXPECT_EQ(begins(zeros), kNone);
    end_changing_files();
    EXPECT_EQ(begins(zeros), kAll);
    begin_anew_in_child();
    EXPECT_FALSE(hook::hanare_hook_files[zeros]);
    EXPECT_EQ(begins(zeros), kAll);
    end_beginning();
    EXPECT_FALSE(hook::hanare_hook_files[zeros]);
    EXPECT_EQ(begins(zeros), kNone);
    for (const int file : {ends[0], ends[1], zeros, status, regular, appended}) close(file);
    if (direct >= 0) close(direct);
}

}  // namespace
}  // namespace hanare::intercept
