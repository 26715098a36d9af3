// SPDX-License-Identifier: Apache-2.0
#include "sys/own_thread_id.hpp"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "sys/bare_thread.hpp"
#include "sys/thread_state.hpp"

namespace hanare::sys {
namespace {

bool is_right() { return own_thread_id() == current_thread_id(); }

TEST(OwnThreadId, IsTheKernelsInEachThread) {
    EXPECT_TRUE(is_right());
    EXPECT_TRUE(is_right());
    // One after the other: they get the memory of those before.
    for (int i = 0; i < 20; ++i) std::thread([] { EXPECT_TRUE(is_right()); }).join();
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([] {
            for (int round = 0; round < 100; ++round) EXPECT_TRUE(is_right());
        });
    }
}

// How it is in a child, and in a child of that, in which it was asked or not before.
bool is_right_in_children(const std::function<long()>& make_child, int depth) {
    const long child = make_child();
    if (child == 0) {
        const bool is_good = depth % 2 == 1 || is_right();
        _exit(is_good && (depth == 0 || is_right_in_children(make_child, depth - 1)) && is_right()
                  ? 0
                  : 1);
    }
    int status = -1;
    return waitpid(static_cast<pid_t>(child), &status, 0) == child && status == 0;
}

TEST(OwnThreadId, IsAnotherInChildren) {
    EXPECT_TRUE(is_right());
    EXPECT_TRUE(is_right_in_children([] { return static_cast<long>(fork()); }, 3));
    // Of which libc knows nothing.
    EXPECT_TRUE(is_right_in_children([] { return syscall(SYS_fork); }, 3));
    EXPECT_TRUE(is_right());
}

TEST(OwnThreadId, BareThreadsThatAreStartedAgain) {
    BareThread thread;
    if (const auto prepared = thread.prepare(); !prepared) GTEST_SKIP() << prepared.error().text;
    for (int i = 0; i < 3; ++i) {
        bool is_good = false;
        ASSERT_EQ(thread.start(
                      [](void* argument) {
                          const bool first = is_right();
                          *static_cast<bool*>(argument) = first && is_right();
                      },
                      &is_good),
                  0);
        thread.join();
        EXPECT_TRUE(is_good);
    }
}

}  // namespace
}  // namespace hanare::sys
