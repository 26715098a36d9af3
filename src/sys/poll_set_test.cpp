// SPDX-License-Identifier: Apache-2.0
#include "sys/poll_set.hpp"

#include <gtest/gtest.h>

#include "sys/clock.hpp"
#include "sys/event.hpp"

namespace hanare::sys {
namespace {

TEST(PollSet, SaysWhatIsReady) {
    EventFd quiet = EventFd::open().value();
    EventFd loud = EventFd::open().value();
    loud.post();
    PollSet set;
    EXPECT_TRUE(set.add(quiet.number(), {.to_read = true}));
    EXPECT_TRUE(set.add(loud.number(), {.to_read = true}));
    set.wait(-1);
    EXPECT_FALSE(set.is_ready(quiet.number()));
    EXPECT_TRUE(set.is_ready(loud.number()));
    EXPECT_FALSE(set.is_ready(loud.number() + 1000));
}

TEST(PollSet, EndsWithTheTime) {
    EventFd quiet = EventFd::open().value();
    PollSet set;
    EXPECT_TRUE(set.add(quiet.number(), {.to_read = true}));
    const uint64_t begin_ns = now_ns();
    set.wait(20);
    EXPECT_GE(now_ns() - begin_ns, 19'000'000u);
    EXPECT_FALSE(set.is_ready(quiet.number()));
}

TEST(PollSet, WaitsForRoomToo) {
    EventFd event = EventFd::open().value();
    PollSet set;
    EXPECT_TRUE(set.add(event.number(), {.to_write = true}));
    set.wait(-1);
    EXPECT_TRUE(set.is_ready(event.number()));
}

TEST(PollSet, TakesSoMany) {
    EventFd event = EventFd::open().value();
    PollSet set;
    for (size_t i = 0; i < PollSet::kEntriesMax; ++i) {
        EXPECT_TRUE(set.add(event.number(), {.to_read = true}));
    }
    EXPECT_FALSE(set.add(event.number(), {.to_read = true}));
}

}  // namespace
}  // namespace hanare::sys
