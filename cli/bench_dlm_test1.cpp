// SPDX-License-Identifier: Apache-2.0
//
// Every block size and local part in turn, each round beside the ordinary program.  Under the
// paper's scheme the counts must be those that follow from the sizes; anything else is a failure.
#include "cli/bench_dlm_test1.hpp"

#include <cmath>
#include <cstdio>
#include <set>
#include <vector>

#include "base/units.hpp"
#include "bench/dlm_test1_report.hpp"
#include "bench/room.hpp"
#include "cli/commands.hpp"
#include "cli/json_file.hpp"
#include "cli/store_directory.hpp"
#include "config/rules.hpp"
#include "sys/interrupt.hpp"

namespace hanare::cli {
namespace {

using config::OptionId;

constexpr config::Range kRoundsAllowed(1, 99);
constexpr config::PowerOfTwo kBlocksAllowed(4 * kKiB, 4 * kMiB);
constexpr uint64_t kLocalBlocksMin = 16;

// What --quick changes.
struct Extent {
    const char* size;
    const char* percents;
    const char* rounds;
};
constexpr Extent kFull = {"1G", "100,99.5,95,90,80,60,40,33,10", "3"};
constexpr Extent kQuick = {"64M", "100,95,80,33", "1"};
// The paper's DLM page sizes, and the default block.
constexpr const char* kBlocks = "8K,16K,32K,64K,256K";

using Case = bench::Test1Case;

struct Series : bench::Test1Results {
    std::vector<uint64_t> blocks;
    uint32_t rounds = 0;
    bool exact = false;    // the paper's scheme
    Result<void> verdict;  // the first round whose counts are not what they must be
};

Result<std::vector<uint64_t>> parse_blocks(const std::string& list) {
    std::vector<uint64_t> blocks;
    for (const std::string& text : split_list(list)) {
        HANARE_TRY_ASSIGN(const uint64_t bytes, kBlocksAllowed.parse("--blocks", text));
        blocks.push_back(bytes);
    }
    return blocks;
}

Result<Case> make_case(const config::Options& options, uint64_t bytes, uint64_t block_bytes,
                       double percent) {
    Case made;
    made.percent = percent;
    made.setup.bytes = bytes;
    made.setup.memory.store = options.store;
    made.setup.memory.block_bytes = block_bytes;
    made.setup.memory.engine = config::value_text(options, OptionId::engine);
    made.setup.memory.read_ahead_blocks = options.read_ahead_blocks;
    made.setup.memory.replacement = config::value_text(options, OptionId::replacement);
    const auto blocks = static_cast<double>(made.setup.blocks());
    made.setup.local_blocks = static_cast<uint64_t>(std::llround(blocks * percent / 100));
    if (made.setup.local_blocks >= kLocalBlocksMin) return made;
    return fail(
        HANARE_STATUS_INVALID_ARGUMENT,
        "--local-percent: %g %% of %s are %llu blocks of %s; at least %llu are needed: raise "
        "it or --size, or take smaller --blocks",
        percent, format_size(bytes).c_str(),
        static_cast<unsigned long long>(made.setup.local_blocks), format_size(block_bytes).c_str(),
        static_cast<unsigned long long>(kLocalBlocksMin));
}

Result<void> check_room(const config::Options& options, uint64_t bytes) {
    HANARE_TRY_ASSIGN(const std::string directory, store_directory(options));
    HANARE_TRY_ASSIGN(const bench::MachineRoom room, bench::machine_room(directory));
    const uint64_t allowed = std::min(room.usable_disk_bytes(), room.usable_memory_bytes() / 2);
    if (bytes <= allowed) return {};
    return fail(HANARE_STATUS_INVALID_ARGUMENT,
                "--size: %s of data need as much room in %s and twice as much memory, which allow "
                "%s",
                format_size(bytes).c_str(), directory.c_str(), format_size(allowed).c_str());
}

Result<Series> make_series(const DlmTest1Flags& flags, const config::Options& options) {
    const Extent& extent = flags.quick ? kQuick : kFull;
    Series series;
    HANARE_TRY_ASSIGN(series.blocks, parse_blocks(flags.blocks.value_or(kBlocks)));
    HANARE_TRY_ASSIGN(series.percents,
                      parse_local_percents(flags.percents.value_or(extent.percents)));
    HANARE_TRY_ASSIGN(series.rounds,
                      kRoundsAllowed.parse("--rounds", flags.rounds.value_or(extent.rounds)));
    HANARE_TRY_ASSIGN(series.bytes, parse_size("--size", flags.size.value_or(extent.size)));
    // Whole blocks of every size, so that all sizes do the same work.
    series.bytes =
        round_up(series.bytes, *std::max_element(series.blocks.begin(), series.blocks.end()));
    HANARE_TRY(check_room(options, series.bytes));
    series.exact =
        options.replacement == config::Replacement::kRoundRobin && options.read_ahead_blocks == 0;
    for (const uint64_t block_bytes : series.blocks) {
        for (const double percent : series.percents) {
            HANARE_TRY_ASSIGN(Case made, make_case(options, series.bytes, block_bytes, percent));
            series.cases.push_back(std::move(made));
        }
    }
    return series;
}

Result<void> measure(Series& series) {
    std::set<uint64_t> left_out;
    size_t runs = 0;
    for (uint32_t round = 0; round < series.rounds; ++round) {
        HANARE_TRY_ASSIGN(const bench::Test1Run plain, bench::run_test1_plain(series.bytes));
        for (size_t pass = 0; pass < plain.size(); ++pass) {
            series.plain[pass].push_back(plain[pass].seconds);
        }
        for (Case& which : series.cases) {
            const uint64_t block_bytes = which.setup.memory.block_bytes;
            if (left_out.contains(block_bytes)) continue;
            if (sys::Interrupt::requested()) return fail(HANARE_STATUS_BUSY, "interrupted");
            std::fprintf(stderr, "[%zu/%zu] blocks of %s, %g %% local\n", ++runs,
                         series.rounds * series.cases.size(), format_size(block_bytes).c_str(),
                         which.percent);
            const auto run = bench::run_test1(which.setup);
            if (!run && run.error().status == HANARE_STATUS_NOT_SUPPORTED) {
                std::printf("blocks of %s are left out: %s\n", format_size(block_bytes).c_str(),
                            run.error().text);
                left_out.insert(block_bytes);
                continue;
            }
            if (!run) return std::unexpected(run.error());
            for (size_t pass = 0; pass < run->size(); ++pass) {
                which.seconds[pass].push_back((*run)[pass].seconds);
                which.relative[pass].push_back(plain[pass].seconds / (*run)[pass].seconds);
            }
            which.counts = *run;
            if (series.exact && series.verdict) series.verdict = bench::check_test1_swaps(which);
        }
    }
    std::erase_if(series.cases, [&](const Case& which) {
        return left_out.contains(which.setup.memory.block_bytes);
    });
    return {};
}

Result<void> run_test1(const DlmTest1Flags& flags) {
    HANARE_TRY_ASSIGN(const config::Options options, load_and_apply(*flags.overrides));
    HANARE_TRY_ASSIGN(Series series, make_series(flags, options));
    HANARE_TRY_ASSIGN(JsonFile json, JsonFile::open(flags.json));
    std::printf(
        "DLM Test 1: %s of ints, written (1) for the first time, (2) one int per OS page, (3) "
        "again\nreplacement %s, read-ahead %u, engine %s, store %s; %u round%s\n",
        format_size(series.bytes).c_str(),
        config::value_text(options, OptionId::replacement).c_str(), options.read_ahead_blocks,
        config::value_text(options, OptionId::engine).c_str(), options.store.c_str(), series.rounds,
        series.rounds == 1 ? "" : "s");
    std::fflush(stdout);
    HANARE_TRY(measure(series));
    std::printf("%s", bench::test1_tables(series).c_str());
    std::puts("\nresults verified");
    std::puts(series.exact ? "swaps must be those of the paper's scheme"
                           : "the swaps of the paper's scheme: --replacement round_robin "
                             "--prefetch off");
    HANARE_TRY(json.write(bench::test1_records(series)));
    return series.verdict;
}

}  // namespace

int run_bench_dlm_test1(const DlmTest1Flags& flags) {
    return run_interruptible("hanare bench dlm-test1",
                             [&](const sys::Interrupt&) { return run_test1(flags); });
}

}  // namespace hanare::cli
