// SPDX-License-Identifier: Apache-2.0
#include "fabric/exposed_regions.hpp"

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/apply.hpp"
#include "fabric/test_calls.hpp"
#include "sys/inject.hpp"

namespace hanare::fabric {
namespace {

class ExposedRegionsTest : public testing::Test {
protected:
    hanare_status enter(const Capability& capability, Rights needed, uint64_t offset = 0,
                        uint64_t bytes = 1) {
        ExposedRegions::Access access;
        return regions.enter(capability, needed, offset, bytes, access);
    }

    std::vector<std::byte> memory = std::vector<std::byte>(256);
    ExposedRegions regions;
    uint32_t region = regions.expose(memory, kRead | kWrite).value();
};

TEST_F(ExposedRegionsTest, AKeyIsForItsRightsOnly) {
    const Capability read = regions.capability(region, kRead).value();
    EXPECT_EQ(enter(read, kRead), HANARE_STATUS_OK);
    EXPECT_EQ(enter(read, kWrite), HANARE_STATUS_PERMISSION);
    Capability raised = read;
    raised.rights = kRead | kWrite;
    EXPECT_EQ(enter(raised, kWrite), HANARE_STATUS_BAD_KEY);
    EXPECT_EQ(enter(regions.capability(region, kRead | kWrite).value(), kWrite), HANARE_STATUS_OK);
    EXPECT_EQ(regions.capability(region, kAtomic).error().status, HANARE_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(regions.capability(region + 1, kRead).error().status, HANARE_STATUS_NOT_FOUND);
}

TEST_F(ExposedRegionsTest, EveryBitOfTheKeyCounts) {
    const Capability good = regions.capability(region, kRead).value();
    for (unsigned bit = 0; bit < 128; ++bit) {
        Capability forged = good;
        forged.key.words[bit / 64] ^= uint64_t{1} << (bit % 64);
        EXPECT_EQ(enter(forged, kRead), HANARE_STATUS_BAD_KEY) << bit;
    }
    Capability forged = good;
    forged.rights = UINT32_MAX;
    EXPECT_EQ(enter(forged, kRead), HANARE_STATUS_BAD_KEY);
    forged = good;
    forged.region = UINT32_MAX;
    EXPECT_EQ(enter(forged, kRead), HANARE_STATUS_BAD_KEY);
    EXPECT_EQ(enter(Capability{}, 0), HANARE_STATUS_BAD_KEY);
}

TEST_F(ExposedRegionsTest, Ranges) {
    const Capability read = regions.capability(region, kRead).value();
    EXPECT_EQ(enter(read, kRead, 0, 256), HANARE_STATUS_OK);
    EXPECT_EQ(enter(read, kRead, 256, 0), HANARE_STATUS_OK);
    EXPECT_EQ(enter(read, kRead, 255, 2), HANARE_STATUS_OUT_OF_RANGE);
    EXPECT_EQ(enter(read, kRead, 257, 0), HANARE_STATUS_OUT_OF_RANGE);
    EXPECT_EQ(enter(read, kRead, 1, UINT64_MAX), HANARE_STATUS_OUT_OF_RANGE);
    EXPECT_EQ(enter(read, kRead, UINT64_MAX, 1), HANARE_STATUS_OUT_OF_RANGE);
}

TEST_F(ExposedRegionsTest, OldKeysDoNotHold) {
    const Capability old = regions.capability(region, kRead).value();
    ASSERT_TRUE(regions.revoke(region));
    EXPECT_EQ(enter(old, kRead), HANARE_STATUS_BAD_KEY);
    Capability renumbered = old;
    ++renumbered.epoch;
    EXPECT_EQ(enter(renumbered, kRead), HANARE_STATUS_BAD_KEY);
    const Capability fresh = regions.capability(region, kRead).value();
    EXPECT_EQ(enter(fresh, kRead), HANARE_STATUS_OK);
    ASSERT_TRUE(regions.conceal(region));
    EXPECT_EQ(enter(fresh, kRead), HANARE_STATUS_BAD_KEY);
    EXPECT_EQ(regions.conceal(region).error().status, HANARE_STATUS_NOT_FOUND);
    EXPECT_EQ(regions.expose(memory, kRead).value(), region);
    EXPECT_EQ(enter(fresh, kRead), HANARE_STATUS_BAD_KEY);
}

TEST_F(ExposedRegionsTest, NobodyIsInsideAfterRevoking) {
    std::vector<uint64_t> words(1);
    const uint32_t counted =
        regions.expose(std::as_writable_bytes(std::span(words)), kAtomic).value();
    for (int round = 0; round < 200; ++round) {
        const Capability capability = regions.capability(counted, kAtomic).value();
        std::atomic<bool> has_begun{false};
        std::jthread adder([&] {
            const FetchRequest one = {FetchOp::kAdd, 8, 1, 0};
            uint64_t before = 0;
            do {
                has_begun.store(true);
            } while (apply_fetch(regions, capability, 0, one, before) == HANARE_STATUS_OK);
        });
        while (!has_begun.load()) std::this_thread::yield();
        ASSERT_TRUE(regions.revoke(counted));
        const uint64_t at_revocation = words[0];
        adder.join();
        EXPECT_EQ(words[0], at_revocation);
    }
}

TEST_F(ExposedRegionsTest, NoMoreThanThereIsRoomFor) {
    for (uint32_t i = 1; i < kRegionsMax; ++i) {
        ASSERT_TRUE(regions.expose(memory, kRead));
    }
    EXPECT_EQ(regions.expose(memory, kRead).error().status, HANARE_STATUS_LIMIT);
    EXPECT_EQ(regions.expose({}, kRead).error().status, HANARE_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(regions.expose(memory, 0).error().status, HANARE_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(regions.expose(memory, 1u << 20).error().status, HANARE_STATUS_INVALID_ARGUMENT);
}

TEST(Apply, FetchOps) {
    alignas(8) uint64_t word = 0b1100;
    uint64_t before = 0;
    const auto apply = [&](FetchOp op, uint64_t operand, uint64_t compare = 0) {
        fetch_op(reinterpret_cast<std::byte*>(&word), op, 8, operand, compare, before);
        return word;
    };
    EXPECT_EQ(apply(FetchOp::kAdd, 1), 0b1101u);
    EXPECT_EQ(before, 0b1100u);
    EXPECT_EQ(apply(FetchOp::kAnd, 0b0101), 0b0101u);
    EXPECT_EQ(apply(FetchOp::kOr, 0b1000), 0b1101u);
    EXPECT_EQ(apply(FetchOp::kXor, 0b0001), 0b1100u);
    EXPECT_EQ(apply(FetchOp::kSwap, 7), 7u);
    EXPECT_EQ(before, 0b1100u);
    EXPECT_EQ(apply(FetchOp::kCompareSwap, 9, 8), 7u);
    EXPECT_EQ(before, 7u);
    EXPECT_EQ(apply(FetchOp::kCompareSwap, 9, 7), 9u);
    EXPECT_EQ(before, 7u);
    word = 0xffffffff'ffffffff;
    fetch_op(reinterpret_cast<std::byte*>(&word), FetchOp::kAdd, 4, 1, 0, before);
    EXPECT_EQ(word, 0xffffffff'00000000u);
    EXPECT_EQ(before, 0xffffffffu);
}

// ---- while the content is copied for who has attached

class RevokedSharedMemory : public testing::Test {
protected:
    RevokedSharedMemory() {
        shared.all()[5000] = std::byte{7};
        EXPECT_TRUE(regions.attach(regions.capability(region, kRead).value()));
    }
    ~RevokedSharedMemory() override { sys::inject::disarm_all(); }

    // From now on the first copy waits until somebody else is done, for a while.
    static void await_others_in_copy() {
        is_copying = false;
        others_are_done = false;
        was_waited_for = false;
        sys::inject::observe([](sys::inject::Call call) noexcept {
            if (call != sys::inject::Call::kWrite || is_copying.exchange(true)) return;
            const uint64_t end_ns = sys::now_ns() + 5000 * kNsPerMs;
            while (!others_are_done && sys::now_ns() < end_ns) std::this_thread::yield();
            was_waited_for = others_are_done.load();
        });
    }
    static inline std::atomic<bool> is_copying{false};
    static inline std::atomic<bool> others_are_done{false};
    static inline std::atomic<bool> was_waited_for{false};

    const SharedBytes shared{1 << 20};
    const SharedBytes other{4096};
    ExposedRegions regions;
    uint32_t region = regions.expose(shared.all(), kRead, shared.file()).value();
    uint32_t other_region = regions.expose(other.all(), kRead, other.file()).value();
    Capability other_key = regions.capability(other_region, kRead).value();
};

// Whoever serves others goes on.
TEST_F(RevokedSharedMemory, HoldsUpNobodyElse) {
    const Capability before = regions.capability(region, kRead).value();
    await_others_in_copy();
    std::jthread server([&] {
        while (!is_copying) std::this_thread::yield();
        EXPECT_TRUE(regions.attach(other_key));
        EXPECT_EQ(regions.attach(before).error().status, HANARE_STATUS_BAD_KEY);
        ExposedRegions::Access access;
        EXPECT_EQ(regions.enter(before, kRead, 0, 1, access), HANARE_STATUS_BAD_KEY);
        others_are_done = true;
    });
    std::jthread asker([&] {
        while (!is_copying) std::this_thread::yield();
        // One that holds as soon as it is known.
        const Capability fresh = regions.capability(region, kRead).value();
        ExposedRegions::Access access;
        EXPECT_EQ(regions.enter(fresh, kRead, 0, 1, access), HANARE_STATUS_OK);
    });
    EXPECT_TRUE(regions.revoke(region));
    EXPECT_TRUE(was_waited_for);
    EXPECT_EQ(shared.all()[5000], std::byte{7});
}

TEST_F(RevokedSharedMemory, IsConcealedWhereItCannotBeCopied) {
    sys::inject::arm(sys::inject::Call::kWrite, ENOSPC);
    EXPECT_FALSE(regions.revoke(region));
    sys::inject::disarm_all();
    EXPECT_EQ(regions.capability(region, kRead).error().status, HANARE_STATUS_NOT_FOUND);
    EXPECT_EQ(regions.revoke(region).error().status, HANARE_STATUS_NOT_FOUND);
    EXPECT_TRUE(regions.attach(other_key));
}

}  // namespace
}  // namespace hanare::fabric
