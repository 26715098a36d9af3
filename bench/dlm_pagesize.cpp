// SPDX-License-Identifier: Apache-2.0
#include "bench/dlm_pagesize.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "bench/dlm_test1.hpp"
#include "bench/statistics.hpp"
#include "bench/table.hpp"
#include "sys/clock.hpp"

namespace hanare::bench {
namespace {

constexpr const char* kBench = "dlm-pagesize";
constexpr const char* kCase = "write with one swap";
constexpr double kNsPerUs = 1000;

// The numbers are printed in the paper.
constexpr std::array<PaperSwap, 9> kPaper = {{{4 * kKiB, 311, 103},
                                              {8 * kKiB, 369, 116},
                                              {16 * kKiB, 437, 171},
                                              {32 * kKiB, 559, 182},
                                              {64 * kKiB, 885, 245},
                                              {128 * kKiB, 1505, 395},
                                              {256 * kKiB, 3179, 726},
                                              {512 * kKiB, 7571, 1461},
                                              {1024 * kKiB, 16495, 3106}}};

uint32_t value_of(uint32_t place, uint32_t lap) { return place * 0x9e3779b1u + lap * 0x85ebca6bu; }

volatile uint32_t& int_at(double* array, uint32_t place) {
    return reinterpret_cast<volatile uint32_t*>(array)[place * kSwapStrideBytes / sizeof(uint32_t)];
}

void write_lap(double* array, uint32_t lap) {
    for (uint32_t place = 0; place < kSwapPlaces; ++place) {
        int_at(array, place) = value_of(place, lap);
    }
}

Result<void> check(double* array, uint32_t lap) {
    for (uint32_t place = 0; place < kSwapPlaces; ++place) {
        if (int_at(array, place) == value_of(place, lap)) continue;
        return fail(HANARE_STATUS_CORRUPT, "int %u is not what was written last", place);
    }
    return {};
}

// By the thread that wrote, one for each write.
Result<void> check_swaps(const hanare_counters& before, const hanare_counters& after) {
    const uint64_t came = after.demand_reads - before.demand_reads;
    const uint64_t went = after.write_backs - before.write_backs;
    const uint64_t by_faults = after.evictions_inline - before.evictions_inline;
    if (came == kSwapWrites && went == kSwapWrites && by_faults == kSwapWrites) return {};
    return fail(HANARE_STATUS_INTERNAL,
                "%u writes have fetched %llu blocks and put out %llu, %llu of them in faults",
                kSwapWrites, static_cast<unsigned long long>(came),
                static_cast<unsigned long long>(went), static_cast<unsigned long long>(by_faults));
}

double median(const std::vector<double>& values) { return summarize(values).median; }

}  // namespace

const std::array<PaperSwap, 9>& paper_swaps() { return kPaper; }

Result<double> time_swaps(const HanareMemoryOptions& wanted) {
    constexpr uint32_t kLaps = kSwapWrites / kSwapPlaces;
    static_assert(kLaps * kSwapPlaces == kSwapWrites);
    HanareMemoryOptions options = wanted;
    options.read_ahead_blocks = 0;
    options.replacement = "round_robin";
    HANARE_TRY_ASSIGN(options.local_bytes, test1_budget({.bytes = kSwapDataBytes,
                                                         .local_blocks = kSwapLocalBlocks,
                                                         .memory = options}));
    HANARE_TRY_ASSIGN(const auto memory, hanare_memory(options));
    HANARE_TRY_ASSIGN(double* const array, memory->allocate(kSwapDataBytes));
    // Afterwards all blocks have content, in memory or in the store, and are in order.
    for (uint32_t lap = 0; lap < 2; ++lap) write_lap(array, lap);
    HANARE_TRY_ASSIGN(const hanare_counters before, memory->counters());
    const uint64_t begin_ns = sys::now_ns();
    for (uint32_t lap = 0; lap < kLaps; ++lap) write_lap(array, 2 + lap);
    const uint64_t end_ns = sys::now_ns();
    HANARE_TRY_ASSIGN(const hanare_counters after, memory->counters());
    HANARE_TRY(check(array, 1 + kLaps));
    HANARE_TRY(check_swaps(before, after));
    return static_cast<double>(end_ns - begin_ns) / kNsPerUs / kSwapWrites;
}

std::string swap_table(const std::vector<SwapTimes>& all) {
    Table table({"block", "paper, 1 GbE", "10 GbE", "by hand", "hanare", "relative", "sealed"});
    for (const SwapTimes& times : all) {
        const auto us = [](double value) { return format("%.0f us", value); };
        const auto ours = [](const std::vector<double>& values) {
            return values.empty() ? std::string("-") : format("%.1f us", median(values));
        };
        table.add_row({format_size(times.paper.block_bytes), us(times.paper.gbe_us),
                       us(times.paper.ten_gbe_us), ours(times.raw), ours(times.scheme),
                       times.scheme.empty() || all.front().scheme.empty()
                           ? "-"
                           : format("%.2f", median(times.scheme) / median(all.front().scheme)),
                       ours(times.sealed)});
    }
    return table.text();
}

std::vector<Record> swap_records(const std::vector<SwapTimes>& all, const std::string& engine) {
    std::vector<Record> records;
    for (const SwapTimes& times : all) {
        const auto add = [&](const char* system, const std::vector<double>& values) {
            if (values.empty()) return;
            records.push_back({kBench,
                               kCase,
                               system,
                               "time",
                               "us",
                               summarize(values),
                               {{"block_bytes", times.paper.block_bytes},
                                {"stride_bytes", kSwapStrideBytes},
                                {"writes", kSwapWrites},
                                {"engine", engine},
                                {"network", "loopback"}}});
        };
        add("paper_1gbe", {times.paper.gbe_us});
        add("paper_10gbe", {times.paper.ten_gbe_us});
        add("raw_tcp", times.raw);
        add("hanare", times.scheme);
        add("hanare_sealed", times.sealed);
    }
    return records;
}

}  // namespace hanare::bench
