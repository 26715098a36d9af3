// SPDX-License-Identifier: Apache-2.0
#include "sys/processor.hpp"

#include <gtest/gtest.h>

namespace hanare::sys {
namespace {

TEST(ProcessorTest, AgreesWithTheCompiler) {
    EXPECT_EQ(has_avx2(), __builtin_cpu_supports("avx2") != 0);
    EXPECT_EQ(has_avx2(), __builtin_cpu_supports("avx2") != 0) << "as remembered";
    EXPECT_EQ(has_sse42(), __builtin_cpu_supports("sse4.2") != 0);
    EXPECT_EQ(has_sse42(), __builtin_cpu_supports("sse4.2") != 0) << "as remembered";
}

}  // namespace
}  // namespace hanare::sys
