// SPDX-License-Identifier: Apache-2.0
//
// `hanare bench NAME`: measurements next to what they are compared with, as tables and as JSON.
#include <memory>

#include "cli/bench_fault.hpp"
#include "cli/bench_resident.hpp"
#include "cli/commands.hpp"

namespace hanare::cli {

using config::OptionId;

namespace {

void add_bench_fault(CLI::App& bench) {
    CLI::App* fault = bench.add_subcommand(
        "fault", "what a fault costs, by engine, block size and kind of fault");
    auto flags = std::make_shared<FaultFlags>();
    fault->add_flag("--quick", flags->quick, "fewer faults and repetitions");
    fault->add_option("--json", flags->json, "write the results to this file");
    flags->overrides = add_option_flags(*fault, {OptionId::store});
    set_run(*fault, [flags] { return run_bench_fault(*flags); });
}

}  // namespace

void add_bench(CLI::App& app) {
    CLI::App* bench = app.add_subcommand("bench", "measure Hanare next to its alternatives");
    bench->require_subcommand(1);
    CLI::App* resident = bench->add_subcommand(
        "resident", "STREAM with everything in local memory, against plain memory");
    auto flags = std::make_shared<ResidentFlags>();
    resident->add_flag("--quick", flags->quick, "smaller arrays, fewer repetitions");
    resident->add_option("--json", flags->json, "write the results to this file");
    flags->overrides =
        add_option_flags(*resident, {OptionId::store, OptionId::block_bytes, OptionId::engine});
    set_run(*resident, [flags] { return run_bench_resident(*flags); });
    add_bench_fault(*bench);
}

}  // namespace hanare::cli
