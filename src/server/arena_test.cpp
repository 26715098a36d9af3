// SPDX-License-Identifier: Apache-2.0
#include "server/arena.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.hpp"
#include "base/units.hpp"
#include "server/test_support.hpp"
#include "sys/inject.hpp"

namespace hanare::server {
namespace {

constexpr uint64_t kUnit = 4 * kMiB;

class ArenaTest : public testing::Test {
protected:
    ~ArenaTest() override {
        stop();
        sys::inject::disarm_all();
    }
    void run() {
        thread = std::jthread([this] { arena->run(); });
    }
    void stop() {
        arena->stop();
        if (thread.joinable()) thread.join();
    }
    std::span<std::byte> allocate(uint64_t bytes) {
        const auto piece = arena->allocate(bytes);
        EXPECT_TRUE(piece);
        return piece.value_or(std::span<std::byte>());
    }

    const std::unique_ptr<Arena> arena = Arena::open({.bytes = 64 * kMiB + 5}).value();
    std::jthread thread;
};

TEST_F(ArenaTest, IsOfWholeUnits) {
    EXPECT_EQ(arena->total_bytes(), 64 * kMiB);
    EXPECT_EQ(arena->free_bytes(), 64 * kMiB);
    EXPECT_EQ(arena->largest_bytes(), 64 * kMiB);
    EXPECT_EQ(arena->touched_bytes(), 0u);
    for (const uint64_t bytes : {uint64_t{0}, kUnit - 1}) {
        EXPECT_EQ(Arena::open({.bytes = bytes}).error().status, HANARE_STATUS_INVALID_ARGUMENT);
    }
    for (const uint64_t bytes : {uint64_t{1} << 60, UINT64_MAX}) {
        EXPECT_EQ(Arena::open({.bytes = bytes}).error().status, HANARE_STATUS_NO_MEMORY);
    }
}

TEST_F(ArenaTest, GivesAlignedPiecesOfZeros) {
    const auto a = allocate(kUnit);
    const auto b = allocate(3 * kUnit);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b.data()) % kUnit, 0u);
    EXPECT_EQ(a.data() + kUnit, b.data());
    EXPECT_TRUE(is_zero(b));
    EXPECT_EQ(arena->free_bytes(), 12 * kUnit);
    EXPECT_FALSE(arena->allocate(13 * kUnit));
    EXPECT_EQ(allocate(12 * kUnit).size(), 12 * kUnit);
    EXPECT_FALSE(arena->allocate(kUnit));
    EXPECT_EQ(arena->largest_bytes(), 0u);
}

TEST_F(ArenaTest, WhatComesBackIsNotFreeBeforeItIsWiped) {
    const auto piece = allocate(64 * kMiB);
    std::memset(piece.data(), 0xab, piece.size());
    arena->give_back(piece);
    EXPECT_EQ(arena->free_bytes(), 0u);
    EXPECT_EQ(arena->unwiped_bytes(), 64 * kMiB);
    EXPECT_FALSE(arena->allocate(kUnit));
    run();
    ASSERT_TRUE(comes_true([&] { return arena->free_bytes() == 64 * kMiB; }));
    EXPECT_EQ(arena->unwiped_bytes(), 0u);
    EXPECT_TRUE(is_zero(allocate(64 * kMiB)));
}

TEST_F(ArenaTest, WhatNobodyTouchedIsFreeAtOnce) {
    arena->give_back_untouched(allocate(64 * kMiB));
    EXPECT_EQ(arena->free_bytes(), 64 * kMiB);
    EXPECT_EQ(arena->largest_bytes(), 64 * kMiB);
}

TEST_F(ArenaTest, LockedMemoryIsWipedToo) {
    const auto piece = allocate(kUnit);
    if (mlock(piece.data(), piece.size()) != 0) {
        GTEST_SKIP() << "mlock of 4 MiB is refused (ulimit -l)";
    }
    std::memset(piece.data(), 0xab, piece.size());
    arena->give_back(piece);
    run();
    ASSERT_TRUE(comes_true([&] { return arena->unwiped_bytes() == 0; }));
    EXPECT_TRUE(is_zero(allocate(kUnit)));
}

TEST_F(ArenaTest, TouchesEverythingAndAgainWhatWasWiped) {
    const auto leased = allocate(2 * kUnit);
    std::memset(leased.data(), 0x5a, leased.size());
    run();
    ASSERT_TRUE(comes_true([&] { return arena->touched_bytes() == 64 * kMiB; }));
    EXPECT_TRUE(std::ranges::all_of(leased, [](std::byte b) { return b == std::byte{0x5a}; }));
    arena->give_back(leased);
    ASSERT_TRUE(comes_true(
        [&] { return arena->free_bytes() == 64 * kMiB && arena->touched_bytes() == 64 * kMiB; }));
    EXPECT_TRUE(is_zero(allocate(64 * kMiB)));
}

// What the thread does between two steps of touching.
struct Interruption {
    static inline Arena* arena = nullptr;
    static inline std::span<std::byte> piece;
    static inline std::atomic<uint32_t> steps{0};
    static inline std::atomic<uint64_t> unwiped_at_second{UINT64_MAX};

    static void count(sys::inject::Call call) noexcept {
        if (call == sys::inject::Call::kPopulate) steps.fetch_add(1);
    }
    static void interrupt(sys::inject::Call call) noexcept {
        if (call != sys::inject::Call::kPopulate) return;
        const uint32_t step = steps.fetch_add(1);
        if (step == 0) arena->give_back(piece);
        if (step == 1) unwiped_at_second = arena->unwiped_bytes();
    }
};

TEST_F(ArenaTest, WipesBeforeItTouches) {
    Interruption::steps = 0;
    Interruption::arena = arena.get();
    Interruption::piece = allocate(8 * kUnit);
    sys::inject::observe(Interruption::interrupt);
    run();
    ASSERT_TRUE(comes_true([&] { return arena->touched_bytes() == 64 * kMiB; }));
    EXPECT_EQ(Interruption::unwiped_at_second.load(), 0u);
    // The step under way at the interruption lay in what was wiped.
    EXPECT_EQ(Interruption::steps.load(), 17u);
}

TEST_F(ArenaTest, SaysOnceThatTheKernelRefuses) {
    sys::inject::arm(sys::inject::Call::kPopulate, ENOMEM, 3);
    Interruption::steps = 0;
    sys::inject::observe(Interruption::count);
    testing::internal::CaptureStderr();
    run();
    ASSERT_TRUE(comes_true([] { return Interruption::steps == 4; }));
    // What is left to do is done.
    for (int i = 0; i < 3; ++i) {
        const auto piece = allocate(16 * kUnit);
        arena->give_back(piece);
        ASSERT_TRUE(comes_true([&] { return arena->unwiped_bytes() == 0; }));
    }
    EXPECT_EQ(arena->touched_bytes(), 0u);
    EXPECT_EQ(Interruption::steps, 4u);
    stop();
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("of 64 MiB to lend out, 12 MiB are known to be there"), said.npos) << said;
    EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
}

TEST_F(ArenaTest, WhoeverSleepsIsWokenEachTime) {
    run();
    ASSERT_TRUE(comes_true([&] { return arena->touched_bytes() == 64 * kMiB; }));
    for (int i = 0; i < 200; ++i) {
        arena->give_back(allocate(kUnit));
        ASSERT_TRUE(comes_true([&] { return arena->free_bytes() == 64 * kMiB; })) << i;
    }
}

// Random pieces, each with content of its own.
TEST_F(ArenaTest, NothingIsLostOrShared) {
    run();
    Prng prng(11);
    std::vector<std::span<std::byte>> pieces;
    uint64_t out = 0;
    for (int i = 0; i < 1000; ++i) {
        if (prng.below(2) == 0) {
            const auto piece = arena->allocate((1 + prng.below(4)) * kUnit);
            if (!piece) continue;
            for (size_t at = 0; at < piece->size(); at += kOsPageBytes) {
                ASSERT_EQ((*piece)[at], std::byte{0});
                (*piece)[at] = static_cast<std::byte>(1 + prng.below(255));
            }
            pieces.push_back(*piece);
            out += piece->size();
        } else if (!pieces.empty()) {
            const size_t victim = prng.below(pieces.size());
            const auto piece = pieces[victim];
            pieces.erase(pieces.begin() + static_cast<ptrdiff_t>(victim));
            out -= piece.size();
            arena->give_back(piece);
        }
        const Arena::Room room = arena->room();
        ASSERT_EQ(room.free_bytes + room.unwiped_bytes + out, 64 * kMiB);
    }
    for (const auto piece : pieces) arena->give_back(piece);
    EXPECT_TRUE(comes_true([&] { return arena->largest_bytes() == 64 * kMiB; }));
}

}  // namespace
}  // namespace hanare::server
