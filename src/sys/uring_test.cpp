// SPDX-License-Identifier: Apache-2.0
#include "sys/uring.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

#include "base/units.hpp"
#include "sys/event.hpp"
#include "sys/inject.hpp"
#include "sys/test_support.hpp"

namespace hanare::sys {
namespace {

class UringTest : public ::testing::Test {
protected:
    void SetUp() override {
        if (const int error = Uring::probe(); error != 0) {
            GTEST_SKIP() << "io_uring is refused here: " << std::strerror(error);
        }
        ASSERT_EQ(open_unnamed(directory_.path(), file_), 0);
        ASSERT_EQ(set_length(file_.number(), kMiB), 0);
    }
    ~UringTest() override { inject::disarm_all(); }

    std::unique_ptr<Uring> open(uint32_t entries) {
        auto ring = Uring::open(entries, file_.number());
        EXPECT_TRUE(ring) << ring.error().text;
        return ring ? std::move(*ring) : nullptr;
    }

    static Uring::Completion wait_for_one(Uring& ring) {
        Uring::Completion completion;
        while (!ring.next_completion(completion)) ring.submit_and_wait(-1);
        return completion;
    }

    testing::TemporaryDirectory directory_;
    FileDescriptor file_;
};

TEST_F(UringTest, WritesAndReads) {
    const auto ring = open(8);
    std::vector<std::byte> data(64 * kKiB, std::byte{0x5a});
    std::vector<std::byte> back(data.size());
    ring->queue_write(kOsPageBytes, data.data(), data.size(), 7);
    const auto written = wait_for_one(*ring);
    EXPECT_EQ(written.tag, 7u);
    EXPECT_EQ(written.result, static_cast<int32_t>(data.size()));
    ring->queue_read(kOsPageBytes, back.data(), back.size(), 8);
    ring->submit();
    EXPECT_EQ(wait_for_one(*ring).tag, 8u);
    EXPECT_EQ(back, data);
}

TEST_F(UringTest, GoesRoundManyTimes) {
    constexpr uint32_t kEntries = 4;
    const auto ring = open(kEntries);
    std::vector<std::byte> data(kOsPageBytes);
    for (uint64_t round = 0; round < 100; ++round) {
        for (uint64_t i = 0; i < kEntries; ++i) {
            ring->queue_read(i * kOsPageBytes, data.data(), data.size(), round * kEntries + i);
        }
        uint64_t tags = 0;
        for (uint64_t i = 0; i < kEntries; ++i) tags += wait_for_one(*ring).tag - round * kEntries;
        ASSERT_EQ(tags, 0u + 1 + 2 + 3);
    }
}

TEST_F(UringTest, OpenedByOneThreadAndUsedByAnother) {
    const auto ring = open(8);
    std::vector<std::byte> data(kOsPageBytes);
    int32_t result = 0;
    std::thread([&] {
        ring->queue_read(0, data.data(), data.size(), 1);
        result = wait_for_one(*ring).result;
    }).join();
    EXPECT_EQ(result, static_cast<int32_t>(data.size()));
}

TEST_F(UringTest, WaitEndsAfterTheTimeOut) {
    const auto ring = open(8);
    const auto start = std::chrono::steady_clock::now();
    ring->submit_and_wait(20);
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(20));
    Uring::Completion completion;
    EXPECT_FALSE(ring->next_completion(completion));
}

TEST_F(UringTest, PollCompletesWhenTheEventIsPosted) {
    const auto ring = open(8);
    auto event = EventFd::open();
    ASSERT_TRUE(event);
    ring->queue_poll(event->number(), 3);
    std::thread poster([&] { event->post(); });
    EXPECT_EQ(wait_for_one(*ring).tag, 3u);
    poster.join();
}

TEST_F(UringTest, ErrorsComeBackAsResults) {
    const auto ring = open(8);
    std::byte byte{};
    ring->queue_read(2 * kMiB, &byte, 1, 1);
    EXPECT_EQ(wait_for_one(*ring).result, 0) << "beyond the end";
    ring->queue_write(0, nullptr, kOsPageBytes, 2);
    EXPECT_EQ(wait_for_one(*ring).result, -EFAULT);
}

TEST_F(UringTest, RefusalIsReported) {
    for (const int os_errno : {ENOSYS, EPERM, ENOMEM}) {
        inject::arm(inject::Call::kUringSetup, os_errno);
        const auto ring = Uring::open(8, file_.number());
        ASSERT_FALSE(ring);
        EXPECT_EQ(ring.error().os_errno, os_errno);
        EXPECT_EQ(Uring::probe(), os_errno);
    }
}

TEST_F(UringTest, WorksWithoutTheFlagsOfNewKernels) {
    inject::arm(inject::Call::kUringSetup, EINVAL, 0, 1);
    const auto ring = open(8);
    std::vector<std::byte> data(kOsPageBytes);
    ring->queue_read(0, data.data(), data.size(), 1);
    EXPECT_EQ(wait_for_one(*ring).result, static_cast<int32_t>(data.size()));
}

TEST_F(UringTest, ChildOfAForkHasNoRing) {
    const auto ring = open(8);
    const auto maps_ring = [] {
        std::ifstream maps("/proc/self/maps");
        const std::string text(std::istreambuf_iterator<char>(maps), {});
        return text.find("io_uring") != std::string::npos;
    };
    EXPECT_TRUE(maps_ring());
    EXPECT_EQ(testing::run_in_child([&] {
                  ring->abandon_in_child();
                  return maps_ring() ? "the child shares the ring's memory" : "";
              }),
              "");
    std::vector<std::byte> data(kOsPageBytes);
    ring->queue_read(0, data.data(), data.size(), 1);
    EXPECT_EQ(wait_for_one(*ring).result, static_cast<int32_t>(data.size()));
}

}  // namespace
}  // namespace hanare::sys
