// SPDX-License-Identifier: Apache-2.0
#include "remote/block_seals.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "base/prng.hpp"
#include "base/sanitizers.hpp"
#include "base/units.hpp"
#include "sys/process_usage.hpp"
#include "sys/test_support.hpp"

namespace hanare::remote {
namespace {

using Bytes = std::vector<std::byte>;

// Memory that a store keeps for its clients, children included.
class Keeper {
public:
    explicit Keeper(size_t bytes) : memory_(sys::Mapping::reserve_shared(bytes).value()) {}
    std::byte* at(uint64_t offset) { return memory_.address() + offset; }

private:
    sys::Mapping memory_;
};

Bytes random_bytes(Prng& prng, size_t bytes) {
    Bytes made(bytes);
    for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        const uint64_t word = prng.next();
        std::memcpy(made.data() + at, &word, sizeof word);
    }
    return made;
}

bool is_zero(const std::byte* memory, size_t bytes) {
    return std::all_of(memory, memory + bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

std::unique_ptr<BlockSeals> make(uint64_t store_bytes, uint32_t unit_bytes) {
    return BlockSeals::make(store_bytes, unit_bytes).value();
}

// A store of a few units of 4 KiB, whose keeper may do what it likes to them.
class BlockSealsTest : public testing::Test {
protected:
    static constexpr uint32_t kUnit = 4096;
    static constexpr uint64_t kUnits = 64;

    void write(uint64_t unit, const Bytes& content) {
        ASSERT_TRUE(
            seals_->seal(unit * kUnit, content.data(), keeper_.at(unit * kUnit), content.size()));
    }
    // What comes, nothing if it does not open.
    std::optional<Bytes> read(uint64_t unit, uint64_t count = 1) {
        const std::byte* const from = keeper_.at(unit * kUnit);
        Bytes data(from, from + count * kUnit);
        if (seals_->open(unit * kUnit, data.data(), data.size())) return data;
        EXPECT_TRUE(is_zero(data.data(), data.size())) << "content of which nobody knows whose";
        return std::nullopt;
    }
    Bytes kept(uint64_t unit, uint64_t count = 1) {
        return Bytes(keeper_.at(unit * kUnit), keeper_.at((unit + count) * kUnit));
    }
    void put_back(uint64_t unit, const Bytes& earlier) {
        std::ranges::copy(earlier, keeper_.at(unit * kUnit));
    }
    Bytes random_units(uint64_t count) { return random_bytes(prng_, count * kUnit); }

    Prng prng_{11};
    Keeper keeper_{kUnits * kUnit};
    std::unique_ptr<BlockSeals> seals_ = make(kUnits * kUnit, kUnit);
};

TEST(BlockSeals, NamesWhatCannotBeSealed) {
    for (const uint32_t unit : {0u, 2048u, 12288u, 131072u}) {
        const auto seals = BlockSeals::make(kMiB, unit);
        ASSERT_FALSE(seals) << unit;
        EXPECT_EQ(seals.error().status, HANARE_STATUS_INVALID_ARGUMENT);
    }
    for (const uint64_t store : {uint64_t{0}, UINT64_MAX}) {
        const auto seals = BlockSeals::make(store, 4096);
        ASSERT_FALSE(seals) << store;
        EXPECT_EQ(seals.error().status, HANARE_STATUS_INVALID_ARGUMENT);
    }
    EXPECT_EQ(BlockSeals::make(uint64_t{1} << 62, 4096).error().status, HANARE_STATUS_NO_MEMORY);
}

// Writes and reads of any size anywhere, next to what a plain array would hold.
TEST(BlockSeals, ReadsWhatWasWritten) {
    Prng prng(sys::testing::test_seed());
    for (const uint32_t unit : {4096u, 16384u, 65536u}) {
        constexpr uint64_t kUnits = 40;
        const auto seals = make(kUnits * unit, unit);
        Keeper keeper(kUnits * unit);
        Bytes expected(kUnits * unit);
        for (int round = 0; round < 400; ++round) {
            const uint64_t first = prng.below(kUnits);
            const uint64_t count = 1 + prng.below(std::min<uint64_t>(kUnits - first, 8));
            const uint64_t offset = first * unit;
            const size_t bytes = count * unit;
            if (prng.below(2) == 0) {
                Bytes plain = random_bytes(prng, bytes);
                std::ranges::copy(plain, expected.begin() + static_cast<ptrdiff_t>(offset));
                const bool in_place = prng.below(2) == 0;
                std::byte* const sealed = in_place ? plain.data() : keeper.at(offset);
                ASSERT_TRUE(seals->seal(offset, plain.data(), sealed, bytes));
                if (in_place) std::ranges::copy(plain, keeper.at(offset));
                ASSERT_NE(std::memcmp(keeper.at(offset), expected.data() + offset, bytes), 0);
            }
            Bytes data(keeper.at(offset), keeper.at(offset) + bytes);
            ASSERT_TRUE(seals->open(offset, data.data(), bytes));
            ASSERT_EQ(std::memcmp(data.data(), expected.data() + offset, bytes), 0);
        }
    }
}

TEST_F(BlockSealsTest, NothingToDoIsDone) {
    EXPECT_TRUE(seals_->seal(0, nullptr, nullptr, 0));
    EXPECT_TRUE(seals_->open(kUnits * kUnit, nullptr, 0));
}

TEST_F(BlockSealsTest, EqualContentLooksDifferentEachTime) {
    const Bytes same(2 * kUnit, std::byte{0x42});
    write(0, same);
    const Bytes first = kept(0, 2);
    write(0, same);
    const Bytes second = kept(0, 2);
    const auto unit = [&](const Bytes& of, size_t i) {
        return Bytes(of.begin() + static_cast<ptrdiff_t>(i * kUnit),
                     of.begin() + static_cast<ptrdiff_t>((i + 1) * kUnit));
    };
    EXPECT_FALSE(unit(first, 0) == unit(first, 1));
    EXPECT_FALSE(unit(first, 0) == unit(second, 0));
    EXPECT_FALSE(unit(first, 1) == unit(second, 1));
}

TEST_F(BlockSealsTest, StoresDoNotOpenEachOthers) {
    const auto other = make(kUnits * kUnit, kUnit);
    const Bytes content = random_units(1);
    write(3, content);
    Bytes data(kUnit);
    ASSERT_TRUE(other->seal(3 * kUnit, content.data(), data.data(), kUnit));
    EXPECT_FALSE(data == kept(3));
    put_back(3, data);
    EXPECT_FALSE(read(3));
}

TEST_F(BlockSealsTest, AMovedBlockDoesNotOpen) {
    write(0, random_units(4));
    const Bytes original = kept(0, 4);
    ASSERT_TRUE(read(0, 4));
    put_back(1, kept(2));
    EXPECT_TRUE(read(0));
    EXPECT_FALSE(read(1));
    EXPECT_FALSE(read(0, 4));
    put_back(0, original);
    EXPECT_TRUE(read(0, 4));
}

TEST_F(BlockSealsTest, AnEarlierVersionDoesNotOpen) {
    std::vector<Bytes> versions;
    for (int i = 0; i < 5; ++i) {
        write(7, random_units(2));
        versions.push_back(kept(7, 2));
    }
    for (int i = 0; i < 4; ++i) {
        put_back(7, versions[static_cast<size_t>(i)]);
        EXPECT_FALSE(read(7, 2)) << i;
        EXPECT_FALSE(read(8)) << i;
    }
    put_back(7, versions[4]);
    EXPECT_TRUE(read(7, 2));
    // Only the second unit is an old one.
    put_back(8, Bytes(versions[3].begin() + kUnit, versions[3].end()));
    EXPECT_TRUE(read(7));
    EXPECT_FALSE(read(7, 2));
}

TEST_F(BlockSealsTest, AChangedBitDoesNotOpen) {
    constexpr uint64_t kCount = 3;
    write(0, random_units(kCount));
    const Bytes original = kept(0, kCount);
    // The beginning, middle and end of vectors, cipher blocks and units, each bit of a byte.
    std::vector<size_t> places;
    for (size_t unit = 0; unit < kCount; ++unit) {
        for (const size_t in_unit : {0u, 1u, 15u, 16u, 17u, 63u, 64u, 255u, 256u, 2047u, 2048u,
                                     4079u, 4080u, 4094u, 4095u}) {
            places.push_back(unit * kUnit + in_unit);
        }
    }
    for (int i = 0; i < 50; ++i) places.push_back(prng_.below(kCount * kUnit));
    for (const size_t place : places) {
        for (int bit = 0; bit < 8; ++bit) {
            *keeper_.at(place) ^= static_cast<std::byte>(1 << bit);
            EXPECT_FALSE(read(place / kUnit)) << place << "." << bit;
            EXPECT_FALSE(read(0, kCount)) << place << "." << bit;
            *keeper_.at(place) ^= static_cast<std::byte>(1 << bit);
        }
    }
    ASSERT_TRUE(kept(0, kCount) == original);
    EXPECT_TRUE(read(0, kCount));
}

TEST_F(BlockSealsTest, AServerThatHasLostItIsFoundOut) {
    write(5, random_units(1));
    put_back(5, Bytes(kUnit));
    EXPECT_FALSE(read(5));
}

TEST_F(BlockSealsTest, WhatWasNeverWrittenIsZeros) {
    const Bytes content = random_units(1);
    put_back(0, random_units(4));
    write(2, content);
    const auto data = read(0, 4);
    ASSERT_TRUE(data);
    EXPECT_TRUE(is_zero(data->data(), 2 * kUnit));
    EXPECT_EQ(std::memcmp(data->data() + 2 * kUnit, content.data(), kUnit), 0);
    EXPECT_TRUE(is_zero(data->data() + 3 * kUnit, kUnit));
}

TEST_F(BlockSealsTest, WhatWasReleasedIsZerosToo) {
    const Bytes content = random_units(4);
    write(8, content);
    seals_->release(9 * kUnit, 2 * kUnit);
    const auto data = read(8, 4);
    ASSERT_TRUE(data);
    EXPECT_EQ(std::memcmp(data->data(), content.data(), kUnit), 0);
    EXPECT_TRUE(is_zero(data->data() + kUnit, 2 * kUnit));
    EXPECT_EQ(std::memcmp(data->data() + 3 * kUnit, content.data() + 3 * kUnit, kUnit), 0);
    // And nothing that was there before comes back.
    const Bytes earlier = kept(9);
    const Bytes later = random_units(1);
    write(9, later);
    EXPECT_TRUE(read(9) == later);
    put_back(9, earlier);
    EXPECT_FALSE(read(9));
}

// What a store does with writes that fail: the server has the old content, or the new one.
TEST_F(BlockSealsTest, AfterALostWriteOnlyTheNewContentOpens) {
    write(4, random_units(1));
    const Bytes old_content = kept(4);
    const Bytes content = random_units(1);
    write(4, content);
    const Bytes first_try = kept(4);
    EXPECT_TRUE(read(4) == content) << "it has come although nobody has heard of it";
    put_back(4, old_content);
    EXPECT_FALSE(read(4));
    write(4, content);
    EXPECT_TRUE(read(4) == content);
    put_back(4, first_try);
    EXPECT_FALSE(read(4)) << "the first write has come after the second";
    seals_->release(4 * kUnit, kUnit);
    EXPECT_TRUE(read(4) == Bytes(kUnit)) << "the pager's content goes over it";
}

TEST_F(BlockSealsTest, WithoutVersionsNothingIsSealed) {
    seals_ = BlockSeals::make(kUnits * kUnit, kUnit, sys::UniqueNumbers::kRanges).value();
    const Bytes content = random_units(2);
    const Bytes before = kept(0, 2);
    EXPECT_FALSE(seals_->seal(0, content.data(), keeper_.at(0), content.size()));
    EXPECT_TRUE(kept(0, 2) == before);
    EXPECT_TRUE(read(0, 2) == Bytes(2 * kUnit));
}

TEST(BlockSeals, ThreadsWorkSideBySide) {
    constexpr uint32_t kUnit = 4096;
    constexpr uint64_t kThreads = 4;
    constexpr uint64_t kUnits = 256;
    const auto seals = make(kUnits * kUnit, kUnit);
    Keeper keeper(kUnits * kUnit);
    std::atomic<int> wrong{0};
    {
        std::vector<std::jthread> threads;
        for (uint64_t t = 0; t < kThreads; ++t) {
            // Every fourth unit, so that the seals of all lie side by side.
            threads.emplace_back([&, t] {
                Prng prng(t);
                std::map<uint64_t, Bytes> written;
                for (int round = 0; round < 3000; ++round) {
                    const uint64_t offset = (prng.below(kUnits / kThreads) * kThreads + t) * kUnit;
                    if (prng.below(10) == 0) {
                        seals->release(offset, kUnit);
                        written.erase(offset);
                    } else if (prng.below(2) == 0) {
                        Bytes& content = written[offset];
                        content = random_bytes(prng, kUnit);
                        if (!seals->seal(offset, content.data(), keeper.at(offset), kUnit)) ++wrong;
                    }
                    Bytes data(keeper.at(offset), keeper.at(offset) + kUnit);
                    if (!seals->open(offset, data.data(), kUnit)) ++wrong;
                    const auto found = written.find(offset);
                    if (data != (found == written.end() ? Bytes(kUnit) : found->second)) ++wrong;
                }
            });
        }
    }
    EXPECT_EQ(wrong.load(), 0);
}

// Parent and child go on, each in places of its own.
TEST_F(BlockSealsTest, AfterAForkEachReadsWhatItKnows) {
    const Bytes before = random_units(kUnits);
    write(0, before);
    const auto unit_of = [&](const Bytes& bytes, uint64_t unit) {
        return Bytes(bytes.begin() + static_cast<ptrdiff_t>(unit * kUnit),
                     bytes.begin() + static_cast<ptrdiff_t>((unit + 1) * kUnit));
    };
    // First third: nobody writes.  Second: the parent.  Last: the child.
    const auto go_on = [&](uint64_t first, uint64_t end, uint64_t seed) -> std::string {
        Prng prng(seed);
        std::map<uint64_t, Bytes> written;
        for (int round = 0; round < 500; ++round) {
            const uint64_t unit = first + prng.below(end - first);
            written[unit] = random_bytes(prng, kUnit);
            if (!seals_->seal(unit * kUnit, written[unit].data(), keeper_.at(unit * kUnit), kUnit))
                return "not sealed";
        }
        for (uint64_t unit = 0; unit < 20; ++unit) {
            if (read(unit) != unit_of(before, unit)) return "not what was before the fork";
        }
        for (const auto& [unit, content] : written) {
            if (read(unit) != content) return "not what was written after the fork";
        }
        return "";
    };
    std::string of_parent = "did not run";
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    std::jthread parent([&] {
        char byte = 0;
        if (::read(ends[0], &byte, 1) == 1) of_parent = go_on(20, 40, 1);
    });
    const std::string of_child = sys::testing::run_in_child([&] {
        // From now on both write.
        if (::write(ends[1], "", 1) != 1) return std::string("no pipe");
        return go_on(40, kUnits, 2);
    });
    close(ends[1]);  // ends the wait for a child that has not come that far
    parent.join();
    close(ends[0]);
    EXPECT_EQ(of_child, "");
    EXPECT_EQ(of_parent, "");
    // What the child has written is not ours, until we write there, or say that we know of nothing.
    EXPECT_FALSE(read(40, kUnits - 40));
    seals_->release(40 * kUnit, (kUnits - 40) * kUnit);
    EXPECT_TRUE(read(40, kUnits - 40) == Bytes((kUnits - 40) * kUnit));
}

// A nonce that is used twice shows: zeros become what is xor'ed to plain bytes, which depends on
// key and nonce alone.
TEST_F(BlockSealsTest, NoNonceIsUsedTwiceInAFamily) {
    using Shown = std::array<uint64_t, 2>;
    constexpr uint64_t kMost = 20'000;
    Keeper memory(kOsPageBytes + round_up(kMost * sizeof(Shown), kOsPageBytes));
    auto& count = *reinterpret_cast<std::atomic<uint64_t>*>(memory.at(0));
    auto* const shown = reinterpret_cast<Shown*>(memory.at(kOsPageBytes));
    const auto work = [&] {
        const Bytes zeros(4 * kUnit);
        Bytes sealed(zeros.size());
        for (int round = 0; round < 10; ++round) {
            const bool done = seals_->seal(0, zeros.data(), sealed.data(), sealed.size());
            for (size_t at = 0; done && at < sealed.size(); at += kUnit) {
                const uint64_t place = count.fetch_add(1);
                if (place < kMost) std::memcpy(&shown[place], sealed.data() + at, sizeof(Shown));
            }
        }
    };
    const std::function<void(int)> live = [&](int depth) {
        work();
        for (int i = 0; i < 2 && depth > 0; ++i) {
            const pid_t child = fork();
            if (child == 0) {
                live(depth - 1);
                _exit(0);
            }
            work();
            int status = 0;
            while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
            }
        }
    };
    live(5);
    // 63 processes, and again after each of the forks of 31 of them.
    ASSERT_EQ(count.load(), (63u + 2 * 31) * 40);
    std::sort(shown, shown + count.load());
    EXPECT_EQ(std::adjacent_find(shown, shown + count.load()), shown + count.load());
}

uint64_t anonymous_bytes() { return sys::own_memory().anonymous_bytes; }

class BlockSealsMemory : public testing::Test {
protected:
    void SetUp() override {
#if defined(HANARE_ASAN) || defined(HANARE_TSAN)
        GTEST_SKIP() << "a sanitizer has memory of its own for what is touched";
#endif
    }
    static constexpr uint32_t kUnit = 4096;
    Bytes unit_ = Bytes(kUnit, std::byte{1});
    Bytes sealed_ = Bytes(kUnit);
};

TEST_F(BlockSealsMemory, OfASparseTebibyteIsAPageForEachPlace) {
    const uint64_t before = anonymous_bytes();
    const auto seals = make(uint64_t{1024} * kGiB, kUnit);
    constexpr uint64_t kPlaces = 1024;
    for (uint64_t i = 0; i < kPlaces; ++i) {
        ASSERT_TRUE(seals->seal(i * kGiB, unit_.data(), sealed_.data(), kUnit));
        // Looking takes none.
        ASSERT_TRUE(seals->open(i * kGiB + 512 * kMiB, sealed_.data(), kUnit));
        seals->release(i * kGiB + 256 * kMiB, 16 * kMiB);
    }
    const uint64_t after = anonymous_bytes();
    std::printf("%llu KiB for %llu units here and there in 1 TiB\n",
                static_cast<unsigned long long>((after - before) / kKiB),
                static_cast<unsigned long long>(kPlaces));
    EXPECT_LE(after - before, kPlaces * kOsPageBytes + kMiB);
}

TEST_F(BlockSealsMemory, OfADenseRangeIs24BytesPerUnitAndComesBack) {
    const auto seals = make(uint64_t{1024} * kGiB, kUnit);
    constexpr uint64_t kUnits = 64 * 1024;
    const uint64_t before = anonymous_bytes();
    for (uint64_t i = 0; i < kUnits; ++i) {
        ASSERT_TRUE(seals->seal(i * kUnit, unit_.data(), sealed_.data(), kUnit));
    }
    const uint64_t full = anonymous_bytes();
    EXPECT_GE(full - before, kUnits * BlockSeals::kBytesPerUnit);
    EXPECT_LE(full - before, kUnits * BlockSeals::kBytesPerUnit + 256 * kKiB);
    // In pieces of 4 MiB, as extents are, whose seals are whole pages.
    for (uint64_t i = 0; i < kUnits; i += 1024) seals->release(i * kUnit, 1024 * kUnit);
    EXPECT_LE(anonymous_bytes(), before + 256 * kKiB);
}

}  // namespace
}  // namespace hanare::remote
