// SPDX-License-Identifier: Apache-2.0
#include "bench/fault_cost.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/prng.hpp"
#include "base/units.hpp"
#include "bench/memory.hpp"
#include "hanare/hanare.h"

namespace hanare::bench {

namespace {

Result<void> checked(hanare_status status) {
    if (status == HANARE_STATUS_OK) return {};
    char text[Error::kTextBytes];
    hanare_last_error(text, sizeof text);
    return fail(status, "%s", text);
}

// One pool and one region, whose blocks all pass through the same states.
class Round {
public:
    explicit Round(const FaultCostOptions& options) : options_(options), order_(options.blocks) {
        std::iota(order_.begin(), order_.end(), 0);
    }
    Round(const Round&) = delete;
    Round& operator=(const Round&) = delete;
    ~Round() {
        if (pool_ != nullptr) hanare_pool_close(pool_);
    }

    Result<std::vector<double>> run(uint64_t seed) {
        const auto start = std::chrono::steady_clock::now();
        HANARE_TRY(open());
        const std::chrono::duration<double, std::micro> opening =
            std::chrono::steady_clock::now() - start;
        Prng random(seed);
        for (size_t i = order_.size() - 1; i > 0; --i) {
            std::swap(order_[i], order_[random.below(i + 1)]);
        }
        std::vector<double> cost_us(kFaultKinds);
        cost_us[static_cast<size_t>(FaultKind::kOpening)] = opening.count();
        const auto measure = [&](FaultKind kind, auto access) {
            cost_us[static_cast<size_t>(kind)] = timed_us(access);
        };
        const auto write = [](volatile uint64_t& word) { word = 1; };
        const auto read = [this](volatile uint64_t& word) { sum_ += word; };
        measure(FaultKind::kZeroFill, write);
        HANARE_TRY(checked(hanare_flush(pool_, words_, bytes())));
        measure(FaultKind::kStagedRead, read);
        measure(FaultKind::kUpgrade, write);
        HANARE_TRY(checked(hanare_flush(pool_, words_, bytes())));
        measure(FaultKind::kStagedWrite, write);
        HANARE_TRY(checked(hanare_advise(pool_, words_, bytes(), HANARE_ADVICE_DONTNEED)));
        measure(FaultKind::kDemandRead, read);
        return cost_us;
    }

private:
    uint64_t bytes() const { return options_.blocks * options_.block_bytes; }

    Result<void> open() {
        hanare_pool_options pool = {};
        pool.struct_size = sizeof pool;
        pool.local_bytes = bytes() + bytes() / 8 + 64 * (options_.block_bytes + kKiB);
        pool.store = options_.store.c_str();
        pool.block_bytes = options_.block_bytes;
        pool.engine = options_.engine.c_str();
        pool.read_ahead_blocks = HANARE_READ_AHEAD_OFF;
        HANARE_TRY(checked(hanare_pool_open(&pool, &pool_)));
        void* memory = nullptr;
        HANARE_TRY(checked(hanare_alloc(pool_, bytes(), nullptr, &memory)));
        words_ = static_cast<uint64_t*>(memory);
        return {};
    }

    template <typename Access>
    double timed_us(Access access) {
        const size_t words_per_block = options_.block_bytes / sizeof(uint64_t);
        const auto start = std::chrono::steady_clock::now();
        for (const uint32_t block : order_) access(words_[block * words_per_block]);
        const std::chrono::duration<double, std::micro> elapsed =
            std::chrono::steady_clock::now() - start;
        return elapsed.count() / static_cast<double>(order_.size());
    }

    const FaultCostOptions& options_;
    std::vector<uint32_t> order_;
    hanare_pool* pool_ = nullptr;
    uint64_t* words_ = nullptr;
    uint64_t sum_ = 0;  // keeps the reads
};

}  // namespace

const char* fault_kind_name(FaultKind kind) {
    switch (kind) {
        case FaultKind::kOpening: return "opening";
        case FaultKind::kZeroFill: return "zero fill";
        case FaultKind::kStagedRead: return "staged read";
        case FaultKind::kUpgrade: return "upgrade";
        case FaultKind::kStagedWrite: return "staged write";
        case FaultKind::kDemandRead: return "demand read";
    }
    return "";
}

Result<FaultCosts> measure_fault_costs(const FaultCostOptions& options,
                                       const std::function<bool()>& stop) {
    HANARE_TRY(warm_memory(options.blocks * options.block_bytes));
    FaultCosts costs(kFaultKinds);
    for (int round = -1; round < options.rounds; ++round) {
        if (stop()) return fail(HANARE_STATUS_BUSY, "interrupted");
        HANARE_TRY_ASSIGN(const std::vector<double> cost_us,
                          Round(options).run(static_cast<uint64_t>(round + 2)));
        for (size_t kind = 0; round >= 0 && kind < costs.size(); ++kind) {
            costs[kind].push_back(cost_us[kind]);
        }
    }
    return costs;
}

}  // namespace hanare::bench
