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

TEST(ReadySet, SaysWhoIsReadyAndForWhat) {
    auto set = ReadySet::open();
    auto one = EventFd::open();
    auto other = EventFd::open();
    ASSERT_TRUE(set && one && other);
    EXPECT_EQ(set->add(one->number(), 7, ReadySet::For::kReading), 0);
    EXPECT_EQ(set->add(other->number(), 8, ReadySet::For::kReading), 0);
    EXPECT_EQ(set->add(other->number(), 9, ReadySet::For::kReading), EEXIST);
    EXPECT_EQ(set->next(), -1);
    EXPECT_FALSE(wait_until_readable(-1, set->number(), 0).second);
    other->post();
    EXPECT_EQ(set->next(), 8);
    EXPECT_EQ(set->next(), 8);  // as long as it is
    EXPECT_TRUE(wait_until_readable(-1, set->number(), -1).second);
    other->clear();
    EXPECT_EQ(set->next(), -1);
    EXPECT_EQ(set->change(one->number(), 7, ReadySet::For::kWriting), 0);
    EXPECT_EQ(set->next(), 7);
    one->close();
    EXPECT_EQ(set->next(), -1);
}

TEST(WaitUntilReadable, EitherOrNoneInTime) {
    auto one = EventFd::open();
    auto other = EventFd::open();
    ASSERT_TRUE(one && other);
    Readable readable = wait_until_readable(one->number(), other->number(), 1);
    EXPECT_FALSE(readable.first || readable.second);
    one->post();
    readable = wait_until_readable(one->number(), other->number(), -1);
    EXPECT_TRUE(readable.first && !readable.second);
    other->post();
    readable = wait_until_readable(-1, other->number(), -1);
    EXPECT_TRUE(!readable.first && readable.second);
}

}  // namespace
}  // namespace hanare::sys
