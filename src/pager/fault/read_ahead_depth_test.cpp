// SPDX-License-Identifier: Apache-2.0
//
// Streams of simulated programs over simulated devices, in simulated time.  What is chosen is held
// against the best of all fixed depths on the same device.
#include "pager/fault/read_ahead_depth.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <functional>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

#include "base/prng.hpp"

namespace hanare::pager {
namespace {

constexpr uint64_t kKiB = 1u << 10;
constexpr uint64_t kMiB = 1u << 20;
constexpr uint64_t kSeeds = 8;

struct Device {
    double latency_ns;
    double bytes_per_ns;
};
constexpr Device kLocalDisk = {150e3, 2.5};
constexpr Device kFarDevice = {10e6, 1};

// One sequential stream.  Latency and time per byte vary by up to a fifth, and stay the same for
// about a window, so that windows are as noisy as that.
class Stream {
public:
    Stream(uint64_t block_bytes, double computing_ns, uint64_t seed)
        : block_bytes_(block_bytes), computing_ns_(computing_ns), prng_(seed) {}

    // Needs the next block, and computes with it.  Returns how long it waited.
    double next_block(const Device& device, uint64_t depth_bytes) {
        if (consumed_bytes() >= noise_until_bytes_) {
            noise_ = 0.8 + 0.4 * prng_.unit();
            noise_until_bytes_ = consumed_bytes() + std::max(16 * kMiB, 4 * depth_bytes);
        }
        for (; asked_ <= consumed_ + depth_bytes / block_bytes_; ++asked_) {
            const double transfer_ns = static_cast<double>(block_bytes_) / device.bytes_per_ns;
            device_free_ns_ = std::max(now_ns_ + device.latency_ns * noise_,
                                       device_free_ns_ + transfer_ns * noise_);
            arrivals_ns_.push_back(device_free_ns_);
        }
        const double stalled_ns = std::max(0.0, arrivals_ns_.front() - now_ns_);
        arrivals_ns_.pop_front();
        now_ns_ += stalled_ns + computing_ns_;
        ++consumed_;
        return stalled_ns;
    }

    void next_block(const Device& device, ReadAheadDepth& depth) {
        const double stalled_ns = next_block(device, depth.bytes());
        depth.note(block_bytes_, static_cast<uint64_t>(stalled_ns), static_cast<uint64_t>(now_ns_));
    }

    double now_ns() const { return now_ns_; }
    uint64_t consumed_bytes() const { return consumed_ * block_bytes_; }
    double bytes_per_ns() const { return static_cast<double>(consumed_bytes()) / now_ns_; }

private:
    const uint64_t block_bytes_;
    const double computing_ns_;
    Prng prng_;
    double noise_ = 1;
    uint64_t noise_until_bytes_ = 0;
    uint64_t consumed_ = 0;  // blocks
    uint64_t asked_ = 0;
    double now_ns_ = 0;
    double device_free_ns_ = 0;
    std::deque<double> arrivals_ns_;
};

ReadAheadDepth::Range from_start(uint64_t start_bytes, uint64_t least_bytes, uint64_t most_bytes) {
    return {start_bytes, start_bytes, least_bytes, most_bytes};
}

using DeviceAt = std::function<const Device&(double now_ns)>;

double best_fixed(uint64_t block_bytes, const DeviceAt& device, uint64_t least, uint64_t most,
                  double duration_ns) {
    double best = 0;
    for (uint64_t depth = least; depth <= most; depth *= 2) {
        Stream stream(block_bytes, 0, depth);
        while (stream.now_ns() < duration_ns) stream.next_block(device(stream.now_ns()), depth);
        best = std::max(best, stream.bytes_per_ns());
    }
    return best;
}

double chosen(uint64_t block_bytes, const DeviceAt& device, ReadAheadDepth& depth, uint64_t seed,
              double duration_ns) {
    Stream stream(block_bytes, 0, seed);
    while (stream.now_ns() < duration_ns) stream.next_block(device(stream.now_ns()), depth);
    return stream.bytes_per_ns();
}

TEST(ReadAheadDepth, GrowsAsFarAsTheDeviceNeeds) {
    struct Case {
        Device device;
        uint64_t block_bytes, start_bytes, most_bytes;
        double duration_ns;
    };
    for (const Case& c : {Case{kFarDevice, 256 * kKiB, 4 * kMiB, 64 * kMiB, 40e9},
                          Case{{25e6, 1}, 256 * kKiB, 4 * kMiB, 64 * kMiB, 120e9},
                          Case{{150e3, 2.5}, 4 * kKiB, 64 * kKiB, 4 * kMiB, 10e9},
                          Case{{1e6, 2.5}, 16 * kKiB, 256 * kKiB, 16 * kMiB, 20e9}}) {
        const auto device = [&](double) -> const Device& { return c.device; };
        const double best =
            best_fixed(c.block_bytes, device, c.start_bytes, c.most_bytes, c.duration_ns);
        Stream unchanged(c.block_bytes, 0, 0);
        for (int i = 0; i < 10000; ++i) unchanged.next_block(c.device, c.start_bytes);
        ASSERT_LT(unchanged.bytes_per_ns(), 0.7 * best) << "nothing to gain";
        for (uint64_t seed = 0; seed < kSeeds; ++seed) {
            ReadAheadDepth depth(from_start(c.start_bytes, c.start_bytes, c.most_bytes));
            EXPECT_GT(chosen(c.block_bytes, device, depth, seed, c.duration_ns), 0.9 * best)
                << "latency " << c.device.latency_ns << ", seed " << seed;
        }
    }
}

// Neither for noise of the device, nor for what little it makes a computing program wait.
TEST(ReadAheadDepth, StaysNearTheStartWhereDepthMakesNoDifference) {
    constexpr uint64_t kBlock = 256 * kKiB;
    const double transfer_ns = static_cast<double>(kBlock) / kLocalDisk.bytes_per_ns;
    for (const double computing : {0.0, 0.5, 0.8}) {
        uint64_t trials = 0;
        for (uint64_t seed = 0; seed < 4 * kSeeds; ++seed) {
            ReadAheadDepth depth(from_start(4 * kMiB, kMiB, 64 * kMiB));
            Stream stream(kBlock, computing * transfer_ns, seed);
            uint64_t at_start = 0;
            constexpr uint64_t kBlocks = 1000 * 2 * (16 * kMiB / kBlock);
            for (uint64_t i = 0; i < kBlocks; ++i) {
                stream.next_block(kLocalDisk, depth);
                ASSERT_GE(depth.bytes(), 2 * kMiB) << computing << ", seed " << seed;
                ASSERT_LE(depth.bytes(), 8 * kMiB) << computing << ", seed " << seed;
                at_start += depth.bytes() == 4 * kMiB ? 1 : 0;
            }
            EXPECT_GT(at_start, kBlocks / 2) << computing << ", seed " << seed;
            trials += at_start < kBlocks ? 1 : 0;
        }
        EXPECT_EQ(trials, 4 * kSeeds) << "a class that does nothing would pass";
    }
}

TEST(ReadAheadDepth, DoesNothingForAProgramThatDoesNotWait) {
    constexpr uint64_t kBlock = 256 * kKiB;
    const double computing_ns = 1.5 * static_cast<double>(kBlock) / kLocalDisk.bytes_per_ns;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
        ReadAheadDepth depth(from_start(4 * kMiB, kMiB, 64 * kMiB));
        Stream stream(kBlock, computing_ns, seed);
        for (int i = 0; i < 50000; ++i) {
            stream.next_block(kLocalDisk, depth);
            ASSERT_EQ(depth.bytes(), 4 * kMiB);
        }
    }
}

TEST(ReadAheadDepth, GivesBackWhatIsNoLongerNeeded) {
    constexpr uint64_t kBlock = 256 * kKiB;
    for (const double computing_ns : {0.0, 2e5}) {  // the local disk takes 1e5 ns for a block
        for (uint64_t seed = 0; seed < kSeeds; ++seed) {
            ReadAheadDepth depth(from_start(4 * kMiB, kMiB, 64 * kMiB));
            const auto far = [](double) -> const Device& { return kFarDevice; };
            chosen(kBlock, far, depth, seed, 10e9);
            ASSERT_GE(depth.bytes(), 8 * kMiB);
            Stream stream(kBlock, computing_ns, seed);
            uint64_t smallest = depth.bytes();
            while (stream.consumed_bytes() < 20'000 * kMiB) {
                stream.next_block(kLocalDisk, depth);
                smallest = std::min(smallest, depth.bytes());
            }
            EXPECT_LE(smallest, 4 * kMiB) << computing_ns << ", seed " << seed;
            EXPECT_LE(depth.bytes(), 8 * kMiB) << computing_ns << ", seed " << seed;
        }
    }
}

TEST(ReadAheadDepth, FollowsADeviceWithPhases) {
    constexpr uint64_t kBlock = 256 * kKiB;
    constexpr double kPhaseNs = 30e9;
    constexpr double kDurationNs = 240e9;
    static constexpr Device kSlow = {20e6, 1};
    const auto device = [](double now_ns) -> const Device& {
        return std::fmod(now_ns, 2 * kPhaseNs) < kPhaseNs ? kLocalDisk : kSlow;
    };
    const double best = best_fixed(kBlock, device, 4 * kMiB, 64 * kMiB, kDurationNs);
    ASSERT_GT(best, 1.2 * best_fixed(kBlock, device, 4 * kMiB, 4 * kMiB, kDurationNs));
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
        ReadAheadDepth depth(from_start(4 * kMiB, kMiB, 64 * kMiB));
        EXPECT_GT(chosen(kBlock, device, depth, seed, kDurationNs), 0.9 * best) << "seed " << seed;
    }
}

// Windows that say at random that depth helps or harms, so that all depths are tried.
TEST(ReadAheadDepth, KeepsItsBoundsWhenThreadsContend) {
    constexpr uint64_t kLeast = kMiB;
    constexpr uint64_t kMost = 20 * kMiB;  // not the start doubled so and so often
    ReadAheadDepth depth(from_start(4 * kMiB, kLeast, kMost));
    std::atomic<uint64_t> clock_ns = 0;
    std::atomic<uint64_t> smallest = UINT64_MAX;
    std::atomic<uint64_t> largest = 0;
    const auto run = [&](uint64_t seed) {
        Prng prng(seed);
        uint64_t low = UINT64_MAX;
        uint64_t high = 0;
        for (int i = 0; i < 200000; ++i) {
            const uint64_t now = depth.bytes();
            low = std::min(low, now);
            high = std::max(high, now);
            const bool deep_is_better = (clock_ns.load() / 1'000'000'000u) % 2 == 0;
            const uint64_t stalled_ns =
                deep_is_better ? 400'000 * kMiB / now : 100'000 * now / kMiB;
            const uint64_t now_ns = clock_ns.fetch_add(stalled_ns / 4 + prng.below(1000));
            depth.note(256 * kKiB, stalled_ns, now_ns);
        }
        for (uint64_t seen = smallest; low < seen && !smallest.compare_exchange_weak(seen, low);) {
        }
        for (uint64_t seen = largest; high > seen && !largest.compare_exchange_weak(seen, high);) {
        }
    };
    std::vector<std::jthread> threads;
    for (uint64_t seed = 0; seed < 4; ++seed) threads.emplace_back(run, seed);
    threads.clear();
    EXPECT_EQ(smallest, kLeast);
    EXPECT_EQ(largest, 16 * kMiB);
}

TEST(ReadAheadDepth, StaysWhereThereIsNoChoice) {
    for (const uint64_t most : {4 * kMiB, 8 * kMiB - 1}) {
        ReadAheadDepth depth(from_start(4 * kMiB, 4 * kMiB, most));
        Stream stream(256 * kKiB, 0, 1);
        for (int i = 0; i < 20000; ++i) {
            stream.next_block(kFarDevice, depth);
            ASSERT_EQ(depth.bytes(), 4 * kMiB);
        }
    }
}

TEST(ReadAheadDepth, IsLessWhileOthersUseTheDevice) {
    ReadAheadDepth depth({16 * kMiB, 4 * kMiB, 3 * kMiB, 64 * kMiB});
    Stream stream(256 * kKiB, 0, 1);
    EXPECT_EQ(depth.bytes(), 16 * kMiB);
    depth.note_other_use();
    EXPECT_EQ(depth.bytes(), 4 * kMiB);
    for (int i = 0; i < 63; ++i) stream.next_block(kLocalDisk, depth);
    EXPECT_EQ(depth.bytes(), 4 * kMiB);
    stream.next_block(kLocalDisk, depth);
    EXPECT_EQ(depth.bytes(), 16 * kMiB) << "forgotten";
    uint64_t largest = 0;
    uint64_t smallest = UINT64_MAX;
    for (int i = 0; i < 50000; ++i) {
        if (i % 60 == 0) depth.note_other_use();
        stream.next_block(kFarDevice, depth);
        largest = std::max(largest, depth.bytes());
        smallest = std::min(smallest, depth.bytes());
    }
    EXPECT_EQ(largest, 16 * kMiB) << "it grows all the same";
    EXPECT_GE(smallest, 3 * kMiB);

    ReadAheadDepth little_more({6 * kMiB, 4 * kMiB, kMiB, 64 * kMiB});
    little_more.note_other_use();
    EXPECT_EQ(little_more.bytes(), 4 * kMiB);
}

}  // namespace
}  // namespace hanare::pager
