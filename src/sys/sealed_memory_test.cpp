// SPDX-License-Identifier: Apache-2.0
#include "sys/sealed_memory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace hanare::sys {
namespace {

TEST(SealedMemory, IsReadAgainAndNeverChanged) {
    const std::string text = "a few bytes";
    const FileDescriptor file = sealed_memory_holding(std::as_bytes(std::span(text))).value();
    EXPECT_TRUE(is_sealed_memory(file.number()));
    EXPECT_EQ(read_sealed_memory(file.number(), text.size()).value(), text);
    // Also from where somebody else has left the offset.
    EXPECT_EQ(lseek(file.number(), 0, SEEK_CUR), 0);
    ASSERT_EQ(lseek(file.number(), 0, SEEK_END), static_cast<off_t>(text.size()));
    EXPECT_EQ(read_sealed_memory(file.number(), text.size() + 5).value(), text);
    EXPECT_EQ(read_sealed_memory(file.number(), text.size() - 1).error().status,
              HANARE_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(pwrite(file.number(), "x", 1, 0), -1);
    EXPECT_EQ(ftruncate(file.number(), 0), -1);
}

TEST(SealedMemory, OtherDescriptorsAreNone) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    EXPECT_FALSE(is_sealed_memory(ends[0]));
    close(ends[0]);
    close(ends[1]);
    EXPECT_FALSE(is_sealed_memory(ends[0]));
    EXPECT_EQ(read_sealed_memory(ends[0], 10).error().status, HANARE_STATUS_SYSTEM);
}

}  // namespace
}  // namespace hanare::sys
