// SPDX-License-Identifier: Apache-2.0
#include "bench/fault_cost.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/prng.hpp"
#include "hanare/hanare.hpp"

namespace hanare::bench {

namespace {

class Round {
public:
    explicit Round(const FaultCostOptions& options)
        : options_(options),
          pool_({.local_bytes = (options.blocks + 64) * (options.block_bytes + 1024),
                 .store = options.store,
                 .block_bytes = options.block_bytes,
                 .engine = options.engine,
                 .read_ahead_blocks = HANARE_READ_AHEAD_OFF}),
          words_(pool_.array<uint64_t>(options.blocks * words_per_block())),
          order_(options.blocks) {
        std::iota(order_.begin(), order_.end(), 0);
    }

    std::vector<double> run(uint64_t seed) {
        Prng random(seed);
        for (size_t i = order_.size() - 1; i > 0; --i) {
            std::swap(order_[i], order_[random.below(i + 1)]);
        }
        std::vector<double> cost_us(kFaultKinds);
        const auto set = [&](FaultKind kind, double us) {
            cost_us[static_cast<size_t>(kind)] = us;
        };
        set(FaultKind::kZeroFill, timed_us([](volatile uint64_t& word) { word = 1; }));
        words_.flush();
        set(FaultKind::kStagedRead, timed_us([&](volatile uint64_t& word) { sum_ += word; }));
        set(FaultKind::kUpgrade, timed_us([](volatile uint64_t& word) { word = 2; }));
        words_.flush();
        set(FaultKind::kStagedWrite, timed_us([](volatile uint64_t& word) { word = 3; }));
        words_.advise(Advice::kDontNeed);
        set(FaultKind::kDemandRead, timed_us([&](volatile uint64_t& word) { sum_ += word; }));
        return cost_us;
    }

private:
    size_t words_per_block() const { return options_.block_bytes / sizeof(uint64_t); }

    template <typename Access>
    double timed_us(Access access) {
        const auto start = std::chrono::steady_clock::now();
        for (const uint32_t block : order_) {
            access(static_cast<volatile uint64_t&>(words_[block * words_per_block()]));
        }
        const std::chrono::duration<double, std::micro> elapsed =
            std::chrono::steady_clock::now() - start;
        return elapsed.count() / static_cast<double>(order_.size());
    }

    const FaultCostOptions& options_;
    Pool pool_;
    Array<uint64_t> words_;
    std::vector<uint32_t> order_;
    uint64_t sum_ = 0;  // keeps the reads
};

}  // namespace

const char* fault_kind_name(FaultKind kind) {
    switch (kind) {
        case FaultKind::kZeroFill: return "zero fill";
        case FaultKind::kStagedRead: return "staged read";
        case FaultKind::kUpgrade: return "upgrade";
        case FaultKind::kStagedWrite: return "staged write";
        case FaultKind::kDemandRead: return "demand read";
    }
    return "";
}

Result<FaultCosts> measure_fault_costs(const FaultCostOptions& options) try {
    FaultCosts costs(kFaultKinds);
    for (int round = -1; round < options.rounds; ++round) {
        const std::vector<double> cost_us = Round(options).run(static_cast<uint64_t>(round + 2));
        for (size_t kind = 0; round >= 0 && kind < costs.size(); ++kind) {
            costs[kind].push_back(cost_us[kind]);
        }
    }
    return costs;
} catch (const cpp::Error& error) {
    return fail(error.status(), "%s", error.what());
}

}  // namespace hanare::bench
