// SPDX-License-Identifier: Apache-2.0
#include "cli/fabric_presence.hpp"

#include <algorithm>

#include "bench/fabric_signal.hpp"
#include "bench/statistics.hpp"
#include "bench/table.hpp"

namespace hanare::cli {
namespace {

constexpr const char* kHanare = "hanare";
constexpr const char* kKernel = "kernel";

struct Measured {
    std::string name;
    const char* engine;
    std::vector<double> hanare;
    std::vector<double> kernel;
};

Result<Measured> measure_signals(FabricTargetProcess& target, const std::string& address,
                                 const bench::SignalCase& which, uint32_t signals) {
    Measured measured = {which.name, "shm", {}, {}};
    for (const bench::Caller caller : {bench::Caller::kHanare, bench::Caller::kKernel}) {
        if (caller == bench::Caller::kKernel && !which.has_kernel) continue;
        HANARE_TRY(target.begin_signals(which.state, caller));
        HANARE_TRY_ASSIGN(const std::string line, target.next_line());
        std::vector<double>& times =
            caller == bench::Caller::kHanare ? measured.hanare : measured.kernel;
        HANARE_TRY_ASSIGN(times, bench::signal_target(address, line, which.state, caller, signals));
        HANARE_TRY(target.next_line());
    }
    return measured;
}

std::string table_of(const std::vector<Measured>& all) {
    bench::Table table({"case", "engine", "hanare", "max", "kernel", "of kernel"});
    for (const Measured& each : all) {
        const bench::Summary ours = bench::summarize(each.hanare);
        std::vector<std::string> row = {each.name,
                                        each.engine,
                                        bench::format("%.2f us", ours.median),
                                        bench::format("%.0f us", ours.max),
                                        "",
                                        ""};
        if (!each.kernel.empty()) {
            const double theirs = bench::summarize(each.kernel).median;
            row[4] = bench::format("%.2f us", theirs);
            row[5] = bench::format("%.2fx", ours.median / theirs);
        }
        table.add_row(row);
    }
    return table.text();
}

std::vector<bench::Record> records_of(const std::vector<Measured>& all) {
    std::vector<bench::Record> records;
    for (const Measured& each : all) {
        const nlohmann::json params = {{"engine", each.engine}};
        records.push_back(
            {"fabric", each.name, kHanare, "time", "us", bench::summarize(each.hanare), params});
        if (each.kernel.empty()) continue;
        records.push_back(
            {"fabric", each.name, kKernel, "time", "us", bench::summarize(each.kernel), params});
    }
    return records;
}

}  // namespace

std::string presence_case_names() {
    std::string names;
    for (const bench::SignalCase& each : bench::signal_cases()) {
        if (!names.empty()) names += ",";
        names += each.name;
    }
    return names;
}

Result<PresenceResults> measure_presence(FabricTargetProcess& target, const std::string& address,
                                         const std::vector<std::string>& names, uint32_t signals) {
    const auto is_wanted = [&](const std::string& name) {
        return std::ranges::find(names, name) != names.end();
    };
    std::vector<Measured> all;
    for (const bench::SignalCase& which : bench::signal_cases()) {
        if (!is_wanted(which.name)) continue;
        HANARE_TRY_ASSIGN(Measured measured, measure_signals(target, address, which, signals));
        all.push_back(std::move(measured));
    }
    if (all.empty()) return PresenceResults{};
    return PresenceResults{
        "From the call until the target's handler runs, while its program computes, sleeps, or "
        "polls every 20\nsteps; kill() and a futex do the same.\n\n" +
            table_of(all),
        records_of(all)};
}

}  // namespace hanare::cli
