// SPDX-License-Identifier: Apache-2.0
#include "sys/life_word.hpp"

#include <csignal>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "sys/memory.hpp"

namespace hanare::sys {
namespace {

class LifeWordTest : public ::testing::Test {
protected:
    void SetUp() override { ASSERT_EQ(word.prepare(), 0); }

    const Mapping memory = Mapping::reserve_shared(4096).value();
    LifeWord& word = *reinterpret_cast<LifeWord*>(memory.address());
};

TEST_F(LifeWordTest, BeginsAndEnds) {
    EXPECT_FALSE(word.is_alive());
    word.begin();
    EXPECT_TRUE(word.is_alive());
    word.end();
    EXPECT_FALSE(word.is_alive());
}

TEST_F(LifeWordTest, AThreadThatEndsLivesNoMore) {
    std::thread([this] { word.begin(); }).join();
    EXPECT_FALSE(word.is_alive());
}

TEST_F(LifeWordTest, AProcessThatIsKilledLivesNoMore) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        word.begin();
        if (write(ends[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    char byte = 0;
    ASSERT_EQ(read(ends[0], &byte, 1), 1);
    EXPECT_TRUE(word.is_alive());
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_FALSE(word.is_alive());
    close(ends[0]);
    close(ends[1]);
}

TEST_F(LifeWordTest, AChildDoesNotSpeakForItsParent) {
    word.begin();
    const pid_t child = fork();
    if (child == 0) _exit(word.is_alive() ? 0 : 1);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(word.is_alive());
    word.end();
}

}  // namespace
}  // namespace hanare::sys
