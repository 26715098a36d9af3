// SPDX-License-Identifier: Apache-2.0
#include "bench/dlm_test1_report.hpp"

#include "base/units.hpp"
#include "bench/statistics.hpp"
#include "bench/table.hpp"

namespace hanare::bench {
namespace {

constexpr const char* kBench = "dlm-test1";

int64_t difference(const Test1Case& which, int pass) {
    return static_cast<int64_t>(which.counts[static_cast<size_t>(pass)].swaps) -
           static_cast<int64_t>(test1_expected_swaps(which.setup, pass));
}

std::string accesses_per_swap(const Test1Case& which, int pass) {
    const uint64_t swaps = which.counts[static_cast<size_t>(pass)].swaps;
    if (swaps == 0) return "-";
    return format("%.1f", static_cast<double>(test1_accesses(pass, which.setup.bytes)) /
                              static_cast<double>(swaps));
}

std::vector<std::string> row_head(const Test1Case& which) {
    return {format_size(which.setup.memory.block_bytes), format("%g %%", which.percent)};
}

std::string counts_tables(const Test1Results& results) {
    std::vector<std::string> header = {"block", "local"};
    std::vector<std::string> accesses_header = header;
    for (int pass = 1; pass <= kTest1Passes; ++pass) {
        const std::string name = "(" + std::to_string(pass) + ")";
        header.insert(header.end(), {name + " expected", "swaps", "difference"});
        accesses_header.push_back(name);
    }
    Table counts(header);
    Table accesses(accesses_header);
    for (const Test1Case& which : results.cases) {
        std::vector<std::string> row = row_head(which);
        std::vector<std::string> accesses_row = row;
        for (int pass = 0; pass < kTest1Passes; ++pass) {
            row.push_back(format_count(test1_expected_swaps(which.setup, pass)));
            row.push_back(format_count(which.counts[static_cast<size_t>(pass)].swaps));
            row.push_back(std::to_string(difference(which, pass)));
            accesses_row.push_back(accesses_per_swap(which, pass));
        }
        counts.add_row(std::move(row));
        accesses.add_row(std::move(accesses_row));
    }
    return "\nFig. 9: swaps, and what the paper's scheme gives\n" + counts.text() +
           "\nFig. 10: accesses per swap\n" + accesses.text();
}

// Rows are local parts, columns block sizes.
std::string speeds_table(const Test1Results& results, int pass) {
    std::vector<std::string> header = {"local"};
    for (const Test1Case& which : results.cases) {
        if (which.percent != results.percents.front()) continue;
        header.push_back(format_size(which.setup.memory.block_bytes));
    }
    Table table(header);
    for (const double percent : results.percents) {
        std::vector<std::string> row = {format("%g %%", percent)};
        for (const Test1Case& which : results.cases) {
            if (which.percent != percent) continue;
            row.push_back(format("%.3g %%", 100 * summarize(which.relative[pass]).median));
        }
        table.add_row(std::move(row));
    }
    return format("\n%s(%d) %s: speed relative to plain memory\n",
                  pass == 0 ? "Figs. 11 and 12: " : "", pass + 1, test1_pass_name(pass)) +
           table.text();
}

nlohmann::json params_of(const Test1Results& results, const Test1Case& which) {
    const Test1Setup& setup = which.setup;
    return {{"data_bytes", results.bytes},
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

void add_records(const Test1Results& results, const Test1Case& which, int pass,
                 std::vector<Record>& records) {
    const nlohmann::json params = params_of(results, which);
    const std::string name = test1_pass_name(pass);
    const auto add = [&](const char* metric, const char* unit, std::vector<double> values) {
        records.push_back(
            {kBench, name, "hanare", metric, unit, summarize(std::move(values)), params});
    };
    const auto swaps = static_cast<double>(which.counts[static_cast<size_t>(pass)].swaps);
    add("swaps", "1", {swaps});
    add("swaps_expected", "1", {static_cast<double>(test1_expected_swaps(which.setup, pass))});
    add("swaps_difference", "1", {static_cast<double>(difference(which, pass))});
    if (swaps > 0) {
        add("accesses_per_swap", "1",
            {static_cast<double>(test1_accesses(pass, results.bytes)) / swaps});
    }
    add("time", "s", which.seconds[pass]);
    add("relative_speed", "1", which.relative[pass]);
}

}  // namespace

std::string test1_tables(const Test1Results& results) {
    std::string text = counts_tables(results);
    for (int pass = 0; pass < kTest1Passes; ++pass) text += speeds_table(results, pass);
    return text;
}

std::vector<Record> test1_records(const Test1Results& results) {
    std::vector<Record> records;
    for (int pass = 0; pass < kTest1Passes; ++pass) {
        records.push_back({kBench,
                           test1_pass_name(pass),
                           "plain",
                           "time",
                           "s",
                           summarize(results.plain[pass]),
                           {{"data_bytes", results.bytes}, {"local_ratio", 1.0}, {"threads", 1}}});
        for (const Test1Case& which : results.cases) add_records(results, which, pass, records);
    }
    return records;
}

Result<void> check_test1_swaps(const Test1Case& which) {
    for (int pass = 0; pass < kTest1Passes; ++pass) {
        const uint64_t expected = test1_expected_swaps(which.setup, pass);
        const Test1Pass& found = which.counts[static_cast<size_t>(pass)];
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

}  // namespace hanare::bench
