// SPDX-License-Identifier: Apache-2.0
//
// This process is the source, on one CPU; the target is another one, on another CPU, whose program
// waits for a line while its memory is used.  The systems take turns, round by round.
#include "cli/bench_fabric.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "bench/fabric_case.hpp"
#include "bench/record.hpp"
#include "bench/statistics.hpp"
#include "bench/table.hpp"
#include "cli/commands.hpp"
#include "cli/fabric_group.hpp"
#include "cli/fabric_presence.hpp"
#include "cli/fabric_target_process.hpp"
#include "cli/json_file.hpp"
#include "sys/process_usage.hpp"

namespace hanare::cli {
namespace {

constexpr int kRounds = 15;
constexpr int kQuickRounds = 3;
constexpr int kWarmUps = 1;
constexpr uint32_t kSignals = 1000;
constexpr uint32_t kQuickSignals = 100;
constexpr const char* kRawTcp = "raw_tcp";

struct Measured {
    const bench::FabricCase* which;
    bench::FabricEngine engine;
    std::vector<double> hanare;  // microseconds, by round
    std::vector<double> raw;

    // By round, since both had the same machine then.
    std::vector<double> ratios() const {
        std::vector<double> values;
        for (size_t i = 0; i < raw.size(); ++i) values.push_back(hanare[i] / raw[i]);
        return values;
    }
};

bool is_group_case(const std::string& name) {
    return name == kBarrierCase || name == kMulticastCase;
}

std::vector<std::string> chosen_names(const FabricFlags& flags) {
    return split_list(flags.cases.value_or(fabric_case_names()));
}

Result<std::vector<const bench::FabricCase*>> chosen_cases(const FabricFlags& flags) {
    std::vector<const bench::FabricCase*> chosen;
    for (const std::string& name : chosen_names(flags)) {
        const bench::FabricCase* const which = bench::find_fabric_case(name);
        if (which == nullptr && (is_presence_case(name) || is_group_case(name))) continue;
        if (which == nullptr) {
            return fail(HANARE_STATUS_INVALID_ARGUMENT, "--cases: \"%.50s\"; there are %s",
                        name.c_str(), fabric_case_names().c_str());
        }
        chosen.push_back(which);
    }
    return chosen;
}

Result<void> check_compared(const FabricFlags& flags) {
    for (const std::string& name : split_list(flags.compare.value_or(kRawTcp))) {
        if (name == kRawTcp) continue;
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "--compare: \"%.50s\"; there is %s",
                    name.c_str(), kRawTcp);
    }
    return {};
}

Result<void> measure_raw(FabricTargetProcess& target, const std::string& address,
                         std::vector<Measured>& all, uint64_t seed, bool counts) {
    HANARE_TRY(target.tell("raw"));
    {
        HANARE_TRY_ASSIGN(const auto source, bench::connect_raw(address));
        // Once for all engines, whose entries of a case lie next to each other.
        const bench::FabricCase* which = nullptr;
        double us = 0;
        for (Measured& each : all) {
            if (each.which != which) {
                HANARE_TRY_ASSIGN(us, source->run(*each.which, seed));
            }
            which = each.which;
            if (counts) each.raw.push_back(us);
        }
    }
    HANARE_TRY(target.next_line());
    return {};
}

Result<void> measure_hanare(const std::string& address, std::vector<Measured>& all, uint64_t seed,
                            bool counts) {
    for (const bench::FabricEngine engine : bench::kFabricEngines) {
        HANARE_TRY_ASSIGN(const auto source, bench::connect_fabric(address, engine));
        for (Measured& each : all) {
            if (each.engine != engine) continue;
            HANARE_TRY_ASSIGN(const double us, source->run(*each.which, seed));
            if (counts) each.hanare.push_back(us);
        }
    }
    return {};
}

std::string table_of(const std::vector<Measured>& all) {
    bench::Table table({"case", "engine", "hanare", "raw_tcp", "of raw", "rate"});
    for (const Measured& each : all) {
        const double us = bench::summarize(each.hanare).median;
        const bool is_large = each.which->bytes >= 4096;
        const char* const time_format = us < 1 ? "%.3f us" : "%.2f us";
        table.add_row({each.which->name, name_of(each.engine), bench::format(time_format, us),
                       bench::format("%.2f us", bench::summarize(each.raw).median),
                       bench::format("%.2fx", bench::summarize(each.ratios()).median),
                       is_large ? bench::format("%.2f GB/s",
                                                static_cast<double>(each.which->bytes) / us / 1e3)
                                : bench::format("%.0f k/s", 1e3 / us)});
    }
    return table.text();
}

std::vector<bench::Record> records_of(const std::vector<Measured>& all) {
    std::vector<bench::Record> records;
    for (const Measured& each : all) {
        const nlohmann::json params = {{"bytes", each.which->bytes},
                                       {"depth", each.which->depth},
                                       {"engine", name_of(each.engine)},
                                       {"network", "loopback"}};
        const auto add = [&](const char* system, const char* metric, const char* unit,
                             const std::vector<double>& values) {
            records.push_back({"fabric", each.which->name, system, metric, unit,
                               bench::summarize(values), params});
        };
        add("hanare", "time", "us", each.hanare);
        add(kRawTcp, "time", "us", each.raw);
        add("hanare", "ratio", "x", each.ratios());
    }
    return records;
}

// Prints the table of the cases that are operations.
Result<std::vector<bench::Record>> measure_operations(
    FabricTargetProcess& target, const std::string& address,
    const std::vector<const bench::FabricCase*>& cases, int rounds) {
    std::vector<Measured> all;
    for (const bench::FabricCase* which : cases) {
        for (const bench::FabricEngine engine : bench::kFabricEngines) {
            all.push_back({which, engine, {}, {}});
        }
    }
    if (all.empty()) return std::vector<bench::Record>();
    for (int round = -kWarmUps; round < rounds; ++round) {
        if (sys::Interrupt::requested()) return fail(HANARE_STATUS_BUSY, "interrupted");
        const auto seed = static_cast<uint64_t>(round + 1000);
        HANARE_TRY(measure_hanare(address, all, seed, round >= 0));
        HANARE_TRY(measure_raw(target, address, all, seed, round >= 0));
    }
    std::printf(
        "TCP over loopback, or memory of one machine; a process on each of two CPUs; the target's\n"
        "program sleeps.  Time of an operation, median of %d rounds; with several under way (q) "
        "what\neach takes of the round.\n\n%s",
        rounds, table_of(all).c_str());
    return records_of(all);
}

Result<void> run_fabric(const FabricFlags& flags, const sys::Interrupt& interrupt) {
    HANARE_TRY_ASSIGN(const auto cases, chosen_cases(flags));
    HANARE_TRY(check_compared(flags));
    HANARE_TRY_ASSIGN(JsonFile json, JsonFile::open(flags.json));
    const std::vector<std::string> names = chosen_names(flags);
    // Its tasks run on all CPUs, as long as this process may.
    GroupResults groups;
    if (std::ranges::any_of(names, is_group_case)) {
        HANARE_TRY_ASSIGN(groups, measure_groups(interrupt, flags.quick));
    }
    HANARE_TRY_ASSIGN(FabricTargetProcess target, FabricTargetProcess::start(interrupt));
    HANARE_TRY_ASSIGN(const std::string address, target.next_line());
    sys::stay_on_first_cpu();
    HANARE_TRY_ASSIGN(
        std::vector<bench::Record> records,
        measure_operations(target, address, cases, flags.quick ? kQuickRounds : kRounds));
    const uint32_t signals = flags.quick ? kQuickSignals : kSignals;
    HANARE_TRY_ASSIGN(const PresenceResults presence,
                      measure_presence(target, address, names, signals));
    if (!presence.table.empty()) std::printf("\n%s", presence.table.c_str());
    records.insert(records.end(), presence.records.begin(), presence.records.end());
    if (!groups.table.empty()) std::printf("\n%s", groups.table.c_str());
    records.insert(records.end(), groups.records.begin(), groups.records.end());
    return json.write(records);
}

}  // namespace

std::string fabric_case_names() {
    std::string names;
    for (const bench::FabricCase& each : bench::fabric_cases()) {
        names += std::string(each.name) + ",";
    }
    return names + presence_case_names() + "," + kBarrierCase + "," + kMulticastCase;
}

int run_bench_fabric(const FabricFlags& flags) {
    if (flags.target || flags.group_task) {
        const Result<void> result = flags.target ? serve_as_fabric_target() : run_group_task();
        return result ? kExitSuccess : report(result.error());
    }
    return run_interruptible("hanare bench fabric", [&](const sys::Interrupt& interrupt) {
        return run_fabric(flags, interrupt);
    });
}

}  // namespace hanare::cli
