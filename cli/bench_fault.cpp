// SPDX-License-Identifier: Apache-2.0
//
// One table: a row per engine and block size, a column per kind of fault.
#include "cli/bench_fault.hpp"

#include <algorithm>
#include <cstdio>

#include "base/units.hpp"
#include "bench/fault_cost.hpp"
#include "bench/record.hpp"
#include "bench/statistics.hpp"
#include "bench/table.hpp"
#include "cli/commands.hpp"
#include "cli/json_file.hpp"
#include "sys/interrupt.hpp"
#include "sys/process_usage.hpp"

namespace hanare::cli {
namespace {

constexpr uint64_t kBlockBytes[] = {4 * kKiB, 16 * kKiB, 64 * kKiB, 256 * kKiB, kMiB, 4 * kMiB};

struct Size {
    uint64_t region_bytes_max;
    uint32_t faults_max;
    int rounds;
};
constexpr Size kFull = {128 * kMiB, 2000, 5};
constexpr Size kQuick = {64 * kMiB, 500, 3};

std::vector<std::string> table_header() {
    std::vector<std::string> header = {"engine", "block"};
    for (int kind = 0; kind < bench::kFaultKinds; ++kind) {
        header.push_back(bench::fault_kind_name(static_cast<bench::FaultKind>(kind)));
    }
    return header;
}

void add(const bench::FaultCosts& costs, const bench::FaultCostOptions& options,
         bench::Table& table, std::vector<bench::Record>& records) {
    std::vector<std::string> row = {options.engine, format_size(options.block_bytes)};
    const nlohmann::json params = {{"engine", options.engine},
                                   {"block_bytes", options.block_bytes},
                                   {"store", options.store},
                                   {"faults", options.blocks},
                                   {"threads", 1}};
    for (int kind = 0; kind < bench::kFaultKinds; ++kind) {
        const bench::Summary summary = bench::summarize(costs[static_cast<size_t>(kind)]);
        row.push_back(bench::format("%.1f us", summary.median));
        records.push_back({"fault", bench::fault_kind_name(static_cast<bench::FaultKind>(kind)),
                           "hanare", "time", "us", summary, params});
    }
    table.add_row(std::move(row));
}

Result<void> run_fault(const FaultFlags& flags) {
    HANARE_TRY_ASSIGN(const config::Options options, load_and_apply(*flags.overrides));
    HANARE_TRY_ASSIGN(JsonFile json, JsonFile::open(flags.json));
    const Size size = flags.quick ? kQuick : kFull;
    sys::stay_on_this_cpu();
    bench::Table table(table_header());
    std::vector<bench::Record> records;
    for (const std::string& engine : config::engine_names()) {
        for (const uint64_t block_bytes : kBlockBytes) {
            bench::FaultCostOptions run;
            run.store = options.store;
            run.engine = engine;
            run.block_bytes = block_bytes;
            run.blocks = static_cast<uint32_t>(
                std::min<uint64_t>(size.faults_max, size.region_bytes_max / block_bytes));
            run.rounds = size.rounds;
            const auto costs = bench::measure_fault_costs(run, sys::Interrupt::requested);
            if (!costs && costs.error().status == HANARE_STATUS_NOT_SUPPORTED) {
                std::printf("%s is left out: %s\n", engine.c_str(), costs.error().text);
                break;
            }
            if (!costs) return std::unexpected(costs.error());
            add(*costs, run, table, records);
        }
    }
    std::printf(
        "Time of one access that faults, median of %d; blocks in random order, one thread "
        "on one CPU; a demand read includes the device.\n"
        "Opening: of a pool and a region, once.\n\n%s",
        size.rounds, table.text().c_str());
    return json.write(records);
}

}  // namespace

int run_bench_fault(const FaultFlags& flags) {
    return run_interruptible("hanare bench fault",
                             [&](const sys::Interrupt&) { return run_fault(flags); });
}

}  // namespace hanare::cli
