// SPDX-License-Identifier: Apache-2.0
//
// Every block size and local part in turn, each round beside the ordinary program.  Under the
// paper's scheme the counts must be those that follow from the sizes; anything else is a failure.
#include "cli/bench_dlm_test1.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <set>
#include <vector>

#include "base/units.hpp"
#include "bench/dlm_test1.hpp"
#include "bench/record.hpp"
#include "bench/room.hpp"
#include "bench/statistics.hpp"
#include "bench/table.hpp"
#include "cli/commands.hpp"
#include "cli/json_file.hpp"
#include "cli/store_directory.hpp"
#include "config/rules.hpp"
#include "sys/interrupt.hpp"

namespace hanare::cli {
namespace {

using config::OptionId;

constexpr const char* kBench = "dlm-test1";
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
constexpr Extent kQuick = {"96M", "100,95,80,33", "1"};
// The paper's DLM page sizes, and the default block.
constexpr const char* kBlocks = "8K,16K,32K,64K,256K";

struct Case {
    double percent;
    bench::Test1Setup setup;
    bench::Test1Run counts;  // of the last round
    std::vector<double> seconds[bench::kTest1Passes];
    std::vector<double> relative[bench::kTest1Passes];  // plain / hanare, same round
};

struct Series {
    uint64_t bytes = 0;
    std::vector<uint64_t> blocks;
    std::vector<double> percents;
    uint32_t rounds = 0;
    bool exact = false;  // the paper's scheme
    std::vector<Case> cases;
    std::vector<double> plain[bench::kTest1Passes];
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

Result<std::vector<double>> parse_percents(const std::string& list) {
    std::vector<double> percents;
    for (const std::string& text : split_list(list)) {
        double percent = 0;
        const char* const end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(text.data(), end, percent);
        if (error != std::errc{} || rest != end || !(percent > 0 && percent <= 100)) {
            return config::bad_value("--local-percent", text, "is not a percentage",
                                     "a comma-separated list of numbers above 0, up to 100");
        }
        percents.push_back(percent);
    }
    return percents;
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
    HANARE_TRY_ASSIGN(series.percents, parse_percents(flags.percents.value_or(extent.percents)));
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

// Three counts of one thing must agree, and be what the sizes give.
Result<void> check_exact(const Case& which) {
    for (int pass = 0; pass < bench::kTest1Passes; ++pass) {
        const uint64_t expected = bench::test1_expected_swaps(which.setup, pass);
        const bench::Test1Pass& found = which.counts[static_cast<size_t>(pass)];
        if (found.swaps == expected && found.evictions_inline == expected &&
            found.given_up == expected) {
            continue;
        }
        return fail(
            HANARE_STATUS_INTERNAL,
            "blocks of %s, %g %% local, (%d): %llu swaps, %llu evictions by faults and %llu "
            "blocks given up instead of %llu",
            format_size(which.setup.memory.block_bytes).c_str(), which.percent, pass + 1,
            static_cast<unsigned long long>(found.swaps),
            static_cast<unsigned long long>(found.evictions_inline),
            static_cast<unsigned long long>(found.given_up),
            static_cast<unsigned long long>(expected));
    }
    return {};
}

Result<void> measure(Series& series) {
    std::set<uint64_t> left_out;
    for (uint32_t round = 0; round < series.rounds; ++round) {
        HANARE_TRY_ASSIGN(const bench::Test1Run plain, bench::run_test1_plain(series.bytes));
        for (size_t pass = 0; pass < plain.size(); ++pass) {
            series.plain[pass].push_back(plain[pass].seconds);
        }
        for (Case& which : series.cases) {
            const uint64_t block_bytes = which.setup.memory.block_bytes;
            if (left_out.contains(block_bytes)) continue;
            if (sys::Interrupt::requested()) return fail(HANARE_STATUS_BUSY, "interrupted");
            std::fprintf(stderr, "\rround %u of %u: blocks of %s, %g %% local   ", round + 1,
                         series.rounds, format_size(block_bytes).c_str(), which.percent);
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
            if (series.exact && series.verdict) series.verdict = check_exact(which);
        }
    }
    std::fputs("\n", stderr);
    std::erase_if(series.cases, [&](const Case& which) {
        return left_out.contains(which.setup.memory.block_bytes);
    });
    return {};
}

int64_t difference(const Case& which, int pass) {
    return static_cast<int64_t>(which.counts[static_cast<size_t>(pass)].swaps) -
           static_cast<int64_t>(bench::test1_expected_swaps(which.setup, pass));
}

std::string accesses_per_swap(const Case& which, int pass) {
    const uint64_t swaps = which.counts[static_cast<size_t>(pass)].swaps;
    if (swaps == 0) return "-";
    return bench::format("%.1f",
                         static_cast<double>(bench::test1_accesses(pass, which.setup.bytes)) /
                             static_cast<double>(swaps));
}

std::vector<std::string> row_head(const Case& which) {
    return {format_size(which.setup.memory.block_bytes), bench::format("%g %%", which.percent)};
}

void print_counts(const Series& series) {
    std::vector<std::string> header = {"block", "local"};
    std::vector<std::string> accesses_header = header;
    for (int pass = 1; pass <= bench::kTest1Passes; ++pass) {
        const std::string name = "(" + std::to_string(pass) + ")";
        header.insert(header.end(), {name + " expected", "swaps", "difference"});
        accesses_header.push_back(name);
    }
    bench::Table counts(header);
    bench::Table accesses(accesses_header);
    for (const Case& which : series.cases) {
        std::vector<std::string> row = row_head(which);
        std::vector<std::string> accesses_row = row;
        for (int pass = 0; pass < bench::kTest1Passes; ++pass) {
            row.push_back(bench::format_count(bench::test1_expected_swaps(which.setup, pass)));
            row.push_back(bench::format_count(which.counts[static_cast<size_t>(pass)].swaps));
            row.push_back(std::to_string(difference(which, pass)));
            accesses_row.push_back(accesses_per_swap(which, pass));
        }
        counts.add_row(std::move(row));
        accesses.add_row(std::move(accesses_row));
    }
    std::printf("\nFig. 9: swaps, and what the paper's scheme gives\n%s", counts.text().c_str());
    std::printf("\nFig. 10: accesses per swap\n%s", accesses.text().c_str());
}

// Rows are local parts, columns block sizes.
void print_speeds(const Series& series, int pass) {
    std::vector<std::string> header = {"local"};
    for (const Case& which : series.cases) {
        if (which.percent != series.percents.front()) continue;
        header.push_back(format_size(which.setup.memory.block_bytes));
    }
    bench::Table table(header);
    for (const double percent : series.percents) {
        std::vector<std::string> row = {bench::format("%g %%", percent)};
        for (const Case& which : series.cases) {
            if (which.percent != percent) continue;
            row.push_back(
                bench::format("%.3g %%", 100 * bench::summarize(which.relative[pass]).median));
        }
        table.add_row(std::move(row));
    }
    std::printf("\n%s(%d) %s: speed relative to plain memory\n%s",
                pass == 0 ? "Figs. 11 and 12: " : "", pass + 1, bench::test1_pass_name(pass),
                table.text().c_str());
}

nlohmann::json params_of(const Series& series, const Case& which) {
    const bench::Test1Setup& setup = which.setup;
    return {{"data_bytes", series.bytes},
            {"local_ratio", which.percent / 100},
            {"local_blocks", setup.local_blocks},
            {"block_bytes", setup.memory.block_bytes},
            {"blocks", setup.blocks()},
            {"store", setup.memory.store},
            {"engine", setup.memory.engine},
            {"replacement", setup.memory.replacement},
            {"read_ahead_blocks", setup.memory.read_ahead_blocks},
            {"threads", 1},
            {"flush", false}};
}

void add_records(const Series& series, const Case& which, int pass,
                 std::vector<bench::Record>& records) {
    const nlohmann::json params = params_of(series, which);
    const std::string name = bench::test1_pass_name(pass);
    const auto add = [&](const char* metric, const char* unit, std::vector<double> values) {
        records.push_back(
            {kBench, name, "hanare", metric, unit, bench::summarize(std::move(values)), params});
    };
    const auto swaps = static_cast<double>(which.counts[static_cast<size_t>(pass)].swaps);
    add("swaps", "1", {swaps});
    add("swaps_expected", "1",
        {static_cast<double>(bench::test1_expected_swaps(which.setup, pass))});
    add("swaps_difference", "1", {static_cast<double>(difference(which, pass))});
    if (swaps > 0) {
        add("accesses_per_swap", "1",
            {static_cast<double>(bench::test1_accesses(pass, series.bytes)) / swaps});
    }
    add("time", "s", which.seconds[pass]);
    add("relative_speed", "1", which.relative[pass]);
}

std::vector<bench::Record> records_of(const Series& series) {
    std::vector<bench::Record> records;
    for (int pass = 0; pass < bench::kTest1Passes; ++pass) {
        records.push_back({kBench,
                           bench::test1_pass_name(pass),
                           "plain",
                           "time",
                           "s",
                           bench::summarize(series.plain[pass]),
                           {{"data_bytes", series.bytes}, {"local_ratio", 1.0}, {"threads", 1}}});
        for (const Case& which : series.cases) add_records(series, which, pass, records);
    }
    return records;
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
    print_counts(series);
    for (int pass = 0; pass < bench::kTest1Passes; ++pass) print_speeds(series, pass);
    std::puts("\nresults verified");
    std::puts(series.exact ? "swaps must be those of the paper's scheme"
                           : "the swaps of the paper's scheme: --replacement round_robin "
                             "--prefetch off");
    HANARE_TRY(json.write(records_of(series)));
    return series.verdict;
}

}  // namespace

int run_bench_dlm_test1(const DlmTest1Flags& flags) {
    return run_interruptible("hanare bench dlm-test1",
                             [&](const sys::Interrupt&) { return run_test1(flags); });
}

}  // namespace hanare::cli
