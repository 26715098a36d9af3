// SPDX-License-Identifier: Apache-2.0
#include "sys/event.hpp"

#include <atomic>
#include <cerrno>
#include <gtest/gtest.h>
#include <poll.h>
#include <thread>
#include <vector>

namespace hanare::sys {
namespace {

bool is_readable(const EventFd& event) {
    pollfd entry = {event.number(), POLLIN, 0};
    return poll(&entry, 1, 0) == 1;
}

TEST(EventFd, PostsAddUpAndOneClearTakesThemAll) {
    auto event = EventFd::open();
    ASSERT_TRUE(event);
    errno = E2BIG;
    EXPECT_FALSE(is_readable(*event));
    event->post();
    event->post();
    EXPECT_TRUE(is_readable(*event));
    event->clear();
    EXPECT_FALSE(is_readable(*event));
    event->clear();  // would hang if it waited
    EXPECT_EQ(errno, E2BIG);
}

TEST(EventFd, PostAfterCloseIsHarmless) {
    auto event = EventFd::open();
    ASSERT_TRUE(event);
    event->close();
    event->post();
    EXPECT_EQ(event->number(), -1);
}

// Work wakes one of those who wait, the end all of them.
TEST(WorkWait, WorkIsForOneAndTheEndForAll) {
    constexpr int kThreads = 3;
    auto work = EventFd::open();
    auto end = EventFd::open();
    ASSERT_TRUE(work && end);
    std::atomic<int> done{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&] {
            const auto wait = WorkWait::open(work->number(), *end);
            ASSERT_TRUE(wait) << wait.error().text;
            for (;;) {
                const auto woken = wait->wait(-1);
                if (woken == WorkWait::Woken::kEnd) return;
                if (woken != WorkWait::Woken::kWork) continue;
                work->clear();
                ++done;
            }
        });
    }
    for (int i = 1; i <= 100; ++i) {
        work->post();
        while (done < i) std::this_thread::yield();
    }
    end->post();
    for (std::thread& thread : threads) thread.join();
    EXPECT_GE(done, 100);
}

TEST(WorkWait, GivesUpInTime) {
    auto work = EventFd::open();
    auto end = EventFd::open();
    ASSERT_TRUE(work && end);
    const auto wait = WorkWait::open(work->number(), *end);
    ASSERT_TRUE(wait) << wait.error().text;
    EXPECT_EQ(wait->wait(1), WorkWait::Woken::kNeither);
}

}  // namespace
}  // namespace hanare::sys
