// SPDX-License-Identifier: Apache-2.0
//
// Sorts keys that do not fit into the local budget, with std::sort as it is.
//
//     sort [LOCAL_MIB [KEYS_MIB]]      default 64 and 256
//
// The sorted sequence must be ascending and have the sum and the exclusive-or of the keys put in.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <hanare/hanare.hpp>
#include <random>

namespace {

struct Digest {
    uint64_t sum = 0;
    uint64_t exclusive_or = 0;

    void add(uint64_t key) {
        sum += key;
        exclusive_or ^= key;
    }
    bool operator==(const Digest&) const = default;
};

bool sort_keys(uint64_t local_mib, uint64_t keys_mib) {
    const hanare::Pool pool({.local_bytes = local_mib << 20});
    auto keys = pool.array<uint64_t>((keys_mib << 20) / sizeof(uint64_t));

    std::mt19937_64 random(20090101);
    Digest before;
    for (uint64_t& key : keys) before.add(key = random());

    std::sort(keys.begin(), keys.end());

    keys.advise(hanare::Advice::kSequential);
    Digest after;
    for (const uint64_t key : keys) after.add(key);
    const bool correct = before == after && std::is_sorted(keys.begin(), keys.end());
    std::printf("sort: %zu keys through %llu MiB of local memory, %llu MiB written: %s\n",
                keys.size(), static_cast<unsigned long long>(local_mib),
                static_cast<unsigned long long>(pool.stats().written_bytes >> 20),
                correct ? "correct" : "WRONG");
    return correct;
}

}  // namespace

int main(int argc, char** argv) {
    const uint64_t local_mib = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 64;
    const uint64_t keys_mib = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 256;
    try {
        return sort_keys(local_mib, keys_mib) ? 0 : 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "sort: %s\n", error.what());
        return 1;
    }
}
