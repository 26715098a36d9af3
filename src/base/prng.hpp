// SPDX-License-Identifier: Apache-2.0
//
// xoshiro256** (Blackman, Vigna 2018) seeded by splitmix64: test data and sampling, not security.
#pragma once

#include <bit>
#include <cstdint>

namespace hanare {

// One step of splitmix64: also a good 64-bit mixing function of an index.
constexpr uint64_t splitmix64(uint64_t& state) {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

class Prng {
public:
    explicit constexpr Prng(uint64_t seed) {
        for (uint64_t& word : state_) word = splitmix64(seed);
    }

    constexpr uint64_t next() {
        const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
        const uint64_t t = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= t;
        state_[3] = std::rotl(state_[3], 45);
        return result;
    }

    // Uniform in [0, bound), by multiply-shift; the bias is below 2^-64 * bound.
    constexpr uint64_t below(uint64_t bound) {
        __extension__ using Wide = unsigned __int128;
        return static_cast<uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
    }

    // Uniform in [0, 1), 53 bits.
    constexpr double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

private:
    uint64_t state_[4] = {};
};

}  // namespace hanare
