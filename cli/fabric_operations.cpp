// SPDX-License-Identifier: Apache-2.0
#include "cli/fabric_operations.hpp"

#include <algorithm>

#include "bench/statistics.hpp"
#include "bench/table.hpp"

namespace hanare::cli {
namespace {

constexpr size_t kLargeBytes = 4096;

double median(const std::vector<double>& values) { return bench::summarize(values).median; }

bool is_large(const MeasuredCase& measured) { return measured.which->bytes >= kLargeBytes; }

bool is_over_network(bench::FabricEngine engine) {
    return engine == bench::FabricEngine::kTcp || engine == bench::FabricEngine::kSecure;
}

// Systems that go over TCP are no measure for what goes through memory; raw_tcp is, as a scale.
bool is_comparable(bench::FabricEngine engine, const MeasuredCase::Theirs& theirs) {
    return is_over_network(engine) || theirs.system == kRawTcp;
}

// What sealing adds to tcp; nothing where there is no tcp to compare with.
std::vector<double> extra_processor(const MeasuredCase& measured, const MeasuredCase::Ours& ours) {
    if (ours.engine != bench::FabricEngine::kSecure) return {};
    for (const MeasuredCase::Ours& each : measured.ours) {
        if (each.engine == bench::FabricEngine::kTcp) {
            return differences(ours.processor, each.processor);
        }
    }
    return {};
}

std::string time_text(double us) { return bench::format(us < 1 ? "%.3f us" : "%.2f us", us); }

std::string rate_text(const MeasuredCase& measured, double us) {
    if (!is_large(measured)) return bench::format("%.0f k/s", 1e3 / us);
    return bench::format("%.2f GB/s", static_cast<double>(measured.which->bytes) / us / 1e3);
}

std::string processor_text(const MeasuredCase& measured, const MeasuredCase::Ours& ours) {
    if (!is_large(measured)) return "";
    const std::vector<double> extra = extra_processor(measured, ours);
    std::string text = bench::format("%.2f", median(ours.processor));
    if (!extra.empty()) text += bench::format(" (%+.2f)", median(extra));
    return text;
}

std::string table_of(const std::vector<MeasuredCase>& all) {
    std::vector<std::string> header = {"case", "engine", "hanare"};
    for (const MeasuredCase::Theirs& theirs : all.front().theirs) {
        header.push_back(theirs.system);
        header.emplace_back(theirs.system == kRawTcp ? "of raw" : "of it");
    }
    header.emplace_back("rate");
    header.emplace_back("CPU s/GB");
    bench::Table table(header);
    for (const MeasuredCase& measured : all) {
        for (const MeasuredCase::Ours& ours : measured.ours) {
            const double us = median(ours.times);
            std::vector<std::string> row = {measured.which->name, name_of(ours.engine),
                                            time_text(us)};
            for (const MeasuredCase::Theirs& theirs : measured.theirs) {
                const bool is_shown = is_comparable(ours.engine, theirs);
                row.push_back(is_shown ? time_text(median(theirs.times)) : "");
                row.push_back(is_shown
                                  ? bench::format("%.2fx", median(ratios(ours.times, theirs.times)))
                                  : "");
            }
            row.push_back(rate_text(measured, us));
            row.push_back(processor_text(measured, ours));
            table.add_row(row);
        }
    }
    return table.text();
}

class Records {
public:
    explicit Records(const std::string& network) : network_(network) {}

    void add(const MeasuredCase& measured) {
        for (const MeasuredCase::Ours& ours : measured.ours) add(measured, ours);
    }
    std::vector<bench::Record> take() { return std::move(records_); }

private:
    void add(const MeasuredCase& measured, const MeasuredCase::Ours& ours) {
        const nlohmann::json params = {{"bytes", measured.which->bytes},
                                       {"depth", measured.which->depth},
                                       {"engine", name_of(ours.engine)},
                                       {"network", network_}};
        const auto record = [&](const std::string& system, const char* metric, const char* unit,
                                const std::vector<double>& values, nlohmann::json what) {
            records_.push_back({"fabric", measured.which->name, system, metric, unit,
                                bench::summarize(values), std::move(what)});
        };
        record("hanare", "time", "us", ours.times, params);
        for (const MeasuredCase::Theirs& theirs : measured.theirs) {
            if (!is_comparable(ours.engine, theirs)) continue;
            record(theirs.system, "time", "us", theirs.times, params);
            nlohmann::json to = params;
            to["to"] = theirs.system;
            record("hanare", "ratio", "x", ratios(ours.times, theirs.times), to);
        }
        if (!is_large(measured)) return;
        record("hanare", "processor", "s/GB", ours.processor, params);
        const std::vector<double> extra = extra_processor(measured, ours);
        if (!extra.empty()) record("hanare", "extra_processor", "s/GB", extra, params);
    }

    const std::string& network_;
    std::vector<bench::Record> records_;
};

}  // namespace

Result<OperationResults> measure_operations(const FabricSetting& setting,
                                            const std::vector<bench::FabricCase>& cases) {
    HANARE_TRY_ASSIGN(const std::vector<MeasuredCase> all, measure_rounds(setting, cases));
    if (all.empty()) return OperationResults{};
    Records records(setting.network);
    for (const MeasuredCase& measured : all) records.add(measured);
    return OperationResults{
        bench::format(
            "%s; a process on each of two CPUs;\n"
            "the target's program sleeps.  Time of an operation, median of %d rounds; with several "
            "under way (q)\nwhat each takes of the round.  CPU: both processes, who polls "
            "included; "
            "in brackets what sealing adds.\n\n",
            setting.network == "loopback"
                ? "TCP over loopback, or memory of one machine"
                : "TCP between two networks of one machine, joined by a veth pair",
            setting.rounds) +
            table_of(all),
        records.take()};
}

}  // namespace hanare::cli
