// SPDX-License-Identifier: Apache-2.0
//
// DenseUse: whether blocks that were found to be in dense use still are when they are needed again,
// as far as those tell that were tested.  Who fills an array uses each block densely, and may look
// up single objects in it ever after.
//
// Any thread, without a lock: figures that are a little wrong do no harm.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/prng.hpp"

namespace hanare::pager {

class DenseUse {
public:
    // Whether such a block is to be had as a whole, untested.  At random where most still are: who
    // passes through the same blocks over and over would always meet the same ones otherwise.
    bool is_trusted() noexcept {
        const uint32_t tests = tests_.load(std::memory_order_relaxed);
        if (tests < kTestsMin || found_.load(std::memory_order_relaxed) * 2 < tests) return false;
        uint64_t seed = uses_.fetch_add(1, std::memory_order_relaxed);
        return splitmix64(seed) % kTestPeriod != 0;
    }

    // A test has ended.
    void note(bool is_dense) noexcept {
        uint32_t tests = tests_.load(std::memory_order_relaxed) + 1;
        uint32_t found = found_.load(std::memory_order_relaxed) + (is_dense ? 1 : 0);
        if (tests >= kTestsMax) {
            tests /= 2;
            found /= 2;
        }
        tests_.store(tests, std::memory_order_relaxed);
        found_.store(found, std::memory_order_relaxed);
    }

private:
    static constexpr uint32_t kTestPeriod = 8;
    static constexpr uint32_t kTestsMin = 8;
    static constexpr uint32_t kTestsMax = 64;

    std::atomic<uint64_t> uses_{0};
    std::atomic<uint32_t> tests_{0};
    std::atomic<uint32_t> found_{0};
};

}  // namespace hanare::pager
