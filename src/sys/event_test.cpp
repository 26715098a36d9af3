// SPDX-License-Identifier: Apache-2.0
#include "sys/event.hpp"

#include <cerrno>
#include <gtest/gtest.h>
#include <poll.h>

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

}  // namespace
}  // namespace hanare::sys
