// SPDX-License-Identifier: Apache-2.0
#include "sys/timed_program.hpp"

#include <gtest/gtest.h>

namespace hanare::sys {
namespace {

TEST(TimedProgramTest, SaysHowLongOrWhyNot) {
    const auto slow = time_program_us({"/bin/sleep", "0.02"});
    ASSERT_TRUE(slow) << slow.error().text;
    EXPECT_GE(*slow, 20'000);
    const auto failed = time_program_us({"/bin/sh", "-c", "exit 3"});
    ASSERT_FALSE(failed);
    EXPECT_NE(std::string(failed.error().text).find("3"), std::string::npos);
    const auto absent = time_program_us({"/nonexistent/program"});
    ASSERT_FALSE(absent);
    EXPECT_EQ(absent.error().os_errno, 2);
}

}  // namespace
}  // namespace hanare::sys
