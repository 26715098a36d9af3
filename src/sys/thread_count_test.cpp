// SPDX-License-Identifier: Apache-2.0
#include "sys/thread_count.hpp"

#include <atomic>
#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "base/sanitizers.hpp"

namespace hanare::sys {
namespace {

class ThreadCountTest : public testing::Test {
protected:
    void SetUp() override {
#if defined(HANARE_TSAN)
        GTEST_SKIP() << "the sanitizer has a thread of its own";
#endif
    }

    // What is_single() says while a thread that begins and ends with `body` is there.
    bool is_single_beside(const std::function<void(std::atomic<int>&)>& body) const {
        std::atomic<int> step{0};
        std::thread other([&] { body(step); });
        step.wait(0);
        const bool is_single = count_.is_single();
        step = 2;
        step.notify_all();
        other.join();
        return is_single;
    }

    static void stay(std::atomic<int>& step) {
        step = 1;
        step.notify_all();
        step.wait(1);
    }

    ThreadCount count_;
};

TEST_F(ThreadCountTest, CountsThreadsOfTheProgram) {
    EXPECT_TRUE(count_.is_single());
    EXPECT_FALSE(is_single_beside(stay));
    while (!count_.is_single()) std::this_thread::yield();  // joined a moment before it is gone
}

TEST_F(ThreadCountTest, OwnThreadsDoNotCount) {
    EXPECT_TRUE(is_single_beside([](std::atomic<int>& step) {
        const OwnThread own;
        stay(step);
    }));
    while (!count_.is_single()) std::this_thread::yield();
}

TEST_F(ThreadCountTest, AnotherFileUnderItsNumberIsNotAsked) {
    const int next = dup(STDERR_FILENO);  // the number that it will get
    close(next);
    const ThreadCount count;
    ASSERT_TRUE(count.is_single());
    // A directory with as many links.
    char directory[] = "/tmp/hanare-thread-count-XXXXXX";
    ASSERT_NE(mkdtemp(directory), nullptr);
    const int other = open(directory, O_PATH | O_DIRECTORY);
    ASSERT_EQ(mkdirat(other, "a", 0700), 0);
    struct stat status{};
    ASSERT_EQ(fstat(other, &status), 0);
    EXPECT_EQ(dup2(other, next), next);
    EXPECT_FALSE(count.is_single());
    close(other);
    rmdir((std::string(directory) + "/a").c_str());
    rmdir(directory);
}

TEST_F(ThreadCountTest, TheChildOfAForkHasItsOwn) {
    const OwnThread own;  // as if there were one
    const pid_t child = fork();
    if (child == 0) {
        OwnThread::forget_all();
        _exit(ThreadCount().is_single() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace hanare::sys
