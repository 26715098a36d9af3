// SPDX-License-Identifier: Apache-2.0
#include "sys/processor.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace hanare::sys {
namespace {

TEST(ProcessorTest, AgreesWithTheCompiler) {
    EXPECT_EQ(has_avx2(), __builtin_cpu_supports("avx2") != 0);
    EXPECT_EQ(has_avx2(), __builtin_cpu_supports("avx2") != 0) << "as remembered";
    EXPECT_EQ(has_sse42(), __builtin_cpu_supports("sse4.2") != 0);
    EXPECT_EQ(has_sse42(), __builtin_cpu_supports("sse4.2") != 0) << "as remembered";
}

// The C library's answer may be that of the host's topology, or none.
TEST(ProcessorTest, SecondCacheIsThatOfTheCLibrary) {
    const long expected = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (expected <= 0) GTEST_SKIP() << "the C library does not know it";
    EXPECT_EQ(second_cache_bytes(), static_cast<size_t>(expected));
    EXPECT_EQ(second_cache_bytes(), static_cast<size_t>(expected)) << "as remembered";
}

}  // namespace
}  // namespace hanare::sys
