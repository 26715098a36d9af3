// SPDX-License-Identifier: Apache-2.0
#include "dsm/diff.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "base/prng.hpp"

namespace hanare::dsm {
namespace {

using Block = std::vector<std::byte>;

Block random_block(uint64_t seed) {
    Block block(kBlockBytes);
    for (std::byte& byte : block) byte = static_cast<std::byte>(splitmix64(seed));
    return block;
}

struct Home {
    uint32_t number = 7;
    Block block;

    static std::byte* place(void* context, uint32_t number) noexcept {
        auto& self = *static_cast<Home*>(context);
        return number == self.number ? self.block.data() : nullptr;
    }
};

Block diff_of(const Block& twin, const Block& now) {
    Block room(kDiffBytesMax);
    room.resize(make_diff(7, twin.data(), now.data(), room.data()));
    return room;
}

TEST(DiffTest, OfNothingIsNothing) {
    const Block block = random_block(1);
    EXPECT_TRUE(diff_of(block, block).empty());
}

TEST(DiffTest, BringsWhatHasChanged) {
    for (uint64_t seed = 1; seed < 300; ++seed) {
        uint64_t state = seed;
        const Block twin = random_block(seed);
        Block now = twin;
        const uint64_t changes = splitmix64(state) % 600;
        for (uint64_t i = 0; i < changes; ++i) {
            now[splitmix64(state) % kBlockBytes] = static_cast<std::byte>(splitmix64(state));
        }
        const Block diff = diff_of(twin, now);
        Home home{.block = twin};
        if (!diff.empty()) {
            EXPECT_EQ(apply_diff(diff, Home::place, &home), diff.size()) << "seed " << seed;
            EXPECT_EQ(diff_bytes(diff), diff.size()) << "seed " << seed;
        }
        EXPECT_EQ(home.block, now) << "seed " << seed;
    }
}

TEST(DiffTest, OfAllBytesFitsIntoItsRoom) {
    const Block twin(kBlockBytes, std::byte{0});
    const Block now(kBlockBytes, std::byte{255});
    EXPECT_EQ(diff_of(twin, now).size(), kDiffBytesMax);
}

TEST(DiffTest, SeveralWritersOfOneWordDoNotDisturbEachOther) {
    const Block twin = random_block(3);
    Home home{.block = twin};
    Block first = twin;
    Block second = twin;
    for (size_t at = 0; at < kBlockBytes; ++at) {
        (at % 2 == 0 ? first : second)[at] ^= std::byte{0x5a};
    }
    for (const Block* const now : {&first, &second}) {
        const Block diff = diff_of(twin, *now);
        EXPECT_EQ(apply_diff(diff, Home::place, &home), diff.size());
    }
    for (size_t at = 0; at < kBlockBytes; ++at) {
        EXPECT_EQ(home.block[at], twin[at] ^ std::byte{0x5a}) << at;
    }
}

TEST(DiffTest, WhatDiffersIsFoundWhileOthersWrite) {
    Block twin(kBlockBytes);
    Block now(kBlockBytes);
    EXPECT_FALSE(differs(twin.data(), now.data()));
    now[kBlockBytes - 1] = std::byte{1};
    volatile std::byte& other = now[100];
    std::atomic<bool> is_over{false};
    std::thread writer([&] {
        for (uint32_t i = 0; !is_over.load(); ++i) other = static_cast<std::byte>(i & 1);
    });
    uint32_t found = 0;
    constexpr uint32_t kLooks = 2'000'000;
    for (uint32_t i = 0; i < kLooks; ++i) found += differs(twin.data(), now.data()) ? 1 : 0;
    is_over.store(true);
    writer.join();
    EXPECT_EQ(found, kLooks);
}

TEST(DiffTest, WhatIsCutOffOrForAnotherBlockIsRefused) {
    const Block diff = diff_of(random_block(1), random_block(2));
    Home home{.block = random_block(1)};
    for (size_t bytes = 0; bytes < diff.size(); bytes += 97) {
        EXPECT_EQ(apply_diff(std::span(diff).first(bytes), Home::place, &home), 0u) << bytes;
    }
    home.number = 8;
    EXPECT_EQ(apply_diff(diff, Home::place, &home), 0u);
}

}  // namespace
}  // namespace hanare::dsm
