// SPDX-License-Identifier: Apache-2.0
#include "cli/fabric_sweep.hpp"

#include <algorithm>
#include <array>

#include "bench/statistics.hpp"
#include "bench/table.hpp"

namespace hanare::cli {
namespace {

constexpr size_t kBytesMin = 4;
constexpr size_t kBytesMax = 1u << 20;
constexpr uint32_t kDepth = 8;
// In a round: as many as carry this, within limits.
constexpr size_t kBytesInRound = 32u << 20;
constexpr size_t kOperationsMin = 40;
constexpr size_t kOperationsMax = 1000;
constexpr uint32_t kQuickFraction = 4;

// For each size one after the other, and several at a time.
std::vector<bench::FabricCase> sweep_cases(uint32_t fraction) {
    std::vector<bench::FabricCase> cases;
    for (size_t bytes = kBytesMin; bytes <= kBytesMax; bytes *= 2) {
        const auto operations = static_cast<uint32_t>(
            std::clamp(kBytesInRound / bytes, kOperationsMin, kOperationsMax) / fraction);
        for (const uint32_t depth : {1u, kDepth}) {
            cases.push_back({kSweepCase, bench::FabricAction::kPut, bytes, depth, operations});
        }
    }
    return cases;
}

double median(const std::vector<double>& values) { return bench::summarize(values).median; }

std::vector<double> rates(const std::vector<double>& times) {
    std::vector<double> values;
    for (const double us : times) values.push_back(1e6 / us);
    return values;
}

std::string rate_text(double us, size_t bytes) {
    if (bytes < 4096) return bench::format("%.0f k/s", 1e3 / us);
    return bench::format("%.2f GB/s", static_cast<double>(bytes) / us / 1e3);
}

std::string table_of(const std::vector<MeasuredCase>& all) {
    bench::Table table({"bytes", "tcp", "raw_tcp", "of raw", "tcp, 8", "raw_tcp, 8", "of raw"});
    for (size_t i = 0; i + 1 < all.size(); i += 2) {
        const size_t bytes = all[i].which->bytes;
        std::vector<std::string> row = {std::to_string(bytes)};
        for (const MeasuredCase* each : {&all[i], &all[i + 1]}) {
            const std::vector<double>& ours = each->ours.front().times;
            const std::vector<double>& raw = each->theirs.front().times;
            for (const std::vector<double>* times : {&ours, &raw}) {
                const double us = median(*times);
                row.push_back(each->which->depth == 1 ? bench::format("%.2f us", us)
                                                      : rate_text(us, bytes));
            }
            // Of times; of rates it is the other way round.
            row.push_back(bench::format("%.2fx", each->which->depth == 1
                                                     ? median(ratios(ours, raw))
                                                     : median(ratios(raw, ours))));
        }
        table.add_row(row);
    }
    return table.text();
}

std::vector<bench::Record> records_of(const std::vector<MeasuredCase>& all,
                                      const std::string& network) {
    std::vector<bench::Record> records;
    for (const MeasuredCase& measured : all) {
        const bool is_rate = measured.which->depth > 1;
        const nlohmann::json params = {{"bytes", measured.which->bytes},
                                       {"depth", measured.which->depth},
                                       {"engine", name_of(measured.ours.front().engine)},
                                       {"network", network}};
        const std::vector<double>& ours = measured.ours.front().times;
        const std::vector<double>& raw = measured.theirs.front().times;
        const auto add = [&](const char* system, const std::vector<double>& times) {
            records.push_back({"fabric", kSweepCase, system, is_rate ? "rate" : "time",
                               is_rate ? "puts/s" : "us",
                               bench::summarize(is_rate ? rates(times) : times), params});
        };
        add("hanare", ours);
        add(kRawTcp, raw);
        nlohmann::json to = params;
        to["to"] = kRawTcp;
        records.push_back({"fabric", kSweepCase, "hanare", "ratio", "x",
                           bench::summarize(is_rate ? ratios(raw, ours) : ratios(ours, raw)), to});
    }
    return records;
}

}  // namespace

Result<SweepResults> measure_sweep(const FabricSetting& setting, bool quick) {
    const std::vector<bench::FabricCase> cases = sweep_cases(quick ? kQuickFraction : 1);
    FabricSetting own = setting;
    own.engines = {bench::FabricEngine::kTcp};
    own.has_raw = true;
    own.compared = {};
    if (quick) own.rounds = 1;
    HANARE_TRY_ASSIGN(const std::vector<MeasuredCase> all, measure_rounds(own, cases));
    return SweepResults{
        "sweep: puts over TCP, one after the other (time until it is known to be there) and 8 at a "
        "time (rate).\n\n" +
            table_of(all),
        records_of(all, setting.network)};
}

}  // namespace hanare::cli
