// SPDX-License-Identifier: Apache-2.0
#include "cli/fabric_passive.hpp"

#include "bench/fabric_signal.hpp"
#include "bench/statistics.hpp"
#include "bench/table.hpp"

namespace hanare::cli {
namespace {

constexpr uint32_t kOthersGets = 10;
constexpr uint32_t kOthersQuickGets = 2;

struct Measured {
    std::string system;
    std::string engine;         // of hanare
    std::vector<double> times;  // microseconds
};

Result<Measured> measure_engine(const FabricSetting& setting, bench::FabricEngine engine,
                                uint32_t gets) {
    Measured measured = {"hanare", name_of(engine), {}};
    FabricTargetProcess& target = setting.target;
    HANARE_TRY(target.begin_signals(bench::TargetState::kComputes, bench::Caller::kKernel));
    HANARE_TRY_ASSIGN(const std::string line, target.next_line());
    HANARE_TRY_ASSIGN(measured.times, bench::get_from_busy(setting.address, line, engine, gets));
    HANARE_TRY(target.next_line());
    return measured;
}

double median(const Measured& measured) { return bench::summarize(measured.times).median; }

std::string table_of(const std::vector<Measured>& all) {
    bench::Table table({"system", "engine", "time", "max", "tcp is"});
    for (const Measured& each : all) {
        const bench::Summary summary = bench::summarize(each.times);
        std::vector<std::string> row = {each.system, each.engine,
                                        bench::format("%.2f us", summary.median),
                                        bench::format("%.0f us", summary.max), ""};
        // The first is tcp.
        if (each.engine.empty()) {
            row[4] = bench::format("%.5fx", median(all.front()) / summary.median);
        }
        table.add_row(row);
    }
    return table.text();
}

std::vector<bench::Record> records_of(const std::vector<Measured>& all,
                                      const std::string& network) {
    std::vector<bench::Record> records;
    for (const Measured& each : all) {
        nlohmann::json params = {{"network", network}};
        if (!each.engine.empty()) params["engine"] = each.engine;
        records.push_back({"fabric", kPassiveCase, each.system, "time", "us",
                           bench::summarize(each.times), params});
        if (!each.engine.empty()) continue;
        params = {{"network", network}, {"engine", all.front().engine}, {"to", each.system}};
        records.push_back({"fabric", kPassiveCase, "hanare", "ratio", "x",
                           bench::summarize({median(all.front()) / median(each)}), params});
    }
    return records;
}

}  // namespace

Result<PassiveResults> measure_passive(const FabricSetting& setting, uint32_t gets, bool quick) {
    std::vector<Measured> all;
    for (const bench::FabricEngine engine : setting.engines) {
        HANARE_TRY_ASSIGN(Measured measured, measure_engine(setting, engine, gets));
        all.push_back(std::move(measured));
    }
    for (ComparedProgram& program : setting.compared) {
        HANARE_TRY_ASSIGN(std::vector<double> times,
                          program.get_from_busy(quick ? kOthersQuickGets : kOthersGets));
        all.push_back({program.system(), "", std::move(times)});
    }
    return PassiveResults{
        "passive_target: a get of 64 bytes while the target's program computes, on the CPU of the "
        "thread that\nserves; with others for 200 ms, without calling their library.\n\n" +
            table_of(all),
        records_of(all, setting.network)};
}

}  // namespace hanare::cli
