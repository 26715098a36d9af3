// SPDX-License-Identifier: Apache-2.0
#include "bench/random_reads.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/prng.hpp"

namespace hanare::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kReserved = 1 << 16;  // accesses that a growing vector does not disturb

struct ThreadResult {
    std::vector<uint32_t> times_ns;
    std::optional<uint64_t> wrong_index;
};

void read_some(const RandomReads& run, int thread, uint64_t accesses, Clock::time_point deadline,
               ThreadResult& result) {
    Prng random(run.seed * 64 + static_cast<uint64_t>(thread));
    const uint64_t first = run.pages.first * kPageWords;
    const uint64_t count = (run.pages.last - run.pages.first) * kPageWords;
    result.times_ns.reserve(std::min(accesses, kReserved));
    Clock::time_point now = Clock::now();
    for (uint64_t i = 0; i < accesses && now < deadline; ++i) {
        if (run.stop != nullptr && run.stop->load(std::memory_order_relaxed)) return;
        const uint64_t index = first + random.below(count);
        const Clock::time_point start = Clock::now();
        const uint64_t word = *static_cast<const volatile uint64_t*>(run.words + index);
        now = Clock::now();
        const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(now - start);
        result.times_ns.push_back(
            static_cast<uint32_t>(std::min<int64_t>(time.count(), UINT32_MAX)));
        if (word != pattern_word(index, run.pass)) {
            result.wrong_index = index;
            return;
        }
    }
}

double quantile_us(std::vector<uint32_t>& times_ns, double quantile) {
    const auto rank = static_cast<ptrdiff_t>(quantile * static_cast<double>(times_ns.size() - 1));
    std::nth_element(times_ns.begin(), times_ns.begin() + rank, times_ns.end());
    return times_ns[static_cast<size_t>(rank)] / 1e3;
}

}  // namespace

AccessTimes access_times(std::vector<uint32_t> times_ns) {
    AccessTimes times;
    if (times_ns.empty()) return times;
    uint64_t sum_ns = 0;
    for (const uint32_t time : times_ns) sum_ns += time;
    times.count = times_ns.size();
    times.mean_us = static_cast<double>(sum_ns) / static_cast<double>(times.count) / 1e3;
    times.p50_us = quantile_us(times_ns, 0.5);
    times.p99_us = quantile_us(times_ns, 0.99);
    return times;
}

Result<AccessTimes> run_random_reads(const RandomReads& run) {
    const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                             std::chrono::duration<double>(run.seconds_max));
    std::vector<ThreadResult> results(static_cast<size_t>(run.threads));
    {
        std::vector<std::jthread> others;
        const uint64_t each = run.accesses_max / results.size();
        for (int thread = 1; thread < run.threads; ++thread) {
            others.emplace_back([&run, thread, each, deadline, &results] {
                read_some(run, thread, each, deadline, results[static_cast<size_t>(thread)]);
            });
        }
        read_some(run, 0, each, deadline, results[0]);
    }
    std::vector<uint32_t> times_ns;
    for (const ThreadResult& result : results) {
        if (result.wrong_index) {
            return fail(HANARE_STATUS_CORRUPT, "word %llu is wrong in a random read after pass %u",
                        static_cast<unsigned long long>(*result.wrong_index), run.pass);
        }
        times_ns.insert(times_ns.end(), result.times_ns.begin(), result.times_ns.end());
    }
    return access_times(std::move(times_ns));
}

}  // namespace hanare::bench
