// SPDX-License-Identifier: Apache-2.0
//
// This process is the source, on one CPU; the target is another one, on another CPU, whose program
// waits for a line while its memory is used.  The systems take turns, round by round.
#include "cli/bench_fabric.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <vector>

#include "bench/fabric_case.hpp"
#include "bench/record.hpp"
#include "cli/commands.hpp"
#include "cli/fabric_compared.hpp"
#include "cli/fabric_group.hpp"
#include "cli/fabric_network.hpp"
#include "cli/fabric_operations.hpp"
#include "cli/fabric_passive.hpp"
#include "cli/fabric_presence.hpp"
#include "cli/fabric_sweep.hpp"
#include "cli/fabric_target_process.hpp"
#include "cli/json_file.hpp"
#include "sys/process_usage.hpp"

namespace hanare::cli {
namespace {

constexpr int kRounds = 15;
constexpr int kQuickRounds = 3;
constexpr uint32_t kQuickFraction = 8;  // of a case's operations
constexpr uint32_t kSignals = 1000;
constexpr uint32_t kQuickSignals = 100;

bool is_group_case(const std::string& name) {
    return name == kBarrierCase || name == kMulticastCase;
}

// Also between machines.
bool is_network_case(const std::string& name) {
    return bench::find_fabric_case(name) != nullptr || name == kSweepCase || name == kPassiveCase;
}

std::vector<std::string> all_names() { return split_list(fabric_case_names()); }

// What the command line asks for.
struct Plan {
    std::vector<std::string> names;
    std::vector<bench::FabricCase> operations;
    ComparedChoice compared;
    bool is_veth = false;

    bool has(const std::string& name) const { return std::ranges::count(names, name) > 0; }
};

Result<void> choose_cases(const FabricFlags& flags, Plan& plan) {
    plan.names = flags.cases ? split_list(*flags.cases) : all_names();
    for (const std::string& name : plan.names) {
        if (std::ranges::count(all_names(), name) == 0) {
            return fail(HANARE_STATUS_INVALID_ARGUMENT, "--cases: \"%.50s\"; there are %s",
                        name.c_str(), fabric_case_names().c_str());
        }
        if (flags.cases && plan.is_veth && !is_network_case(name)) {
            return fail(HANARE_STATUS_INVALID_ARGUMENT,
                        "--cases: %s is on one machine, not for --network veth", name.c_str());
        }
    }
    if (plan.is_veth) std::erase_if(plan.names, std::not_fn(is_network_case));
    for (const std::string& name : plan.names) {
        const bench::FabricCase* const which = bench::find_fabric_case(name);
        if (which == nullptr) continue;
        plan.operations.push_back(*which);
        if (flags.quick) plan.operations.back().operations /= kQuickFraction;
    }
    return {};
}

Result<Plan> make_plan(const FabricFlags& flags) {
    Plan plan;
    plan.is_veth = flags.network == kVeth;
    if (!plan.is_veth && flags.network != kLoopback) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "--network: \"%.50s\"; there are %s,%s",
                    flags.network.c_str(), kLoopback, kVeth);
    }
    HANARE_TRY(choose_cases(flags, plan));
    HANARE_TRY_ASSIGN(plan.compared, choose_compared(flags.compare));
    return plan;
}

std::vector<bench::FabricEngine> engines_of(const Plan& plan) {
    if (plan.is_veth) return {bench::FabricEngine::kTcp, bench::FabricEngine::kSecure};
    return {std::begin(bench::kFabricEngines), std::end(bench::kFabricEngines)};
}

// Prints tables and keeps records.
class Report {
public:
    template <typename Results>
    void add(const Results& results) {
        if (results.table.empty()) return;
        std::printf("%s%s", is_empty_ ? "" : "\n", results.table.c_str());
        std::fflush(stdout);
        is_empty_ = false;
        records_.insert(records_.end(), results.records.begin(), results.records.end());
    }
    const std::vector<bench::Record>& records() const { return records_; }

private:
    bool is_empty_ = true;
    std::vector<bench::Record> records_;
};

// Their targets are in the network of ours.
Result<std::vector<ComparedProgram>> start_compared(const Plan& plan, pid_t target,
                                                    const sys::Interrupt& interrupt) {
    std::vector<ComparedProgram> programs;
    for (const ComparedKind* kind : plan.compared.kinds) {
        HANARE_TRY_ASSIGN(
            ComparedProgram program,
            ComparedProgram::start(*kind, plan.is_veth ? std::optional(target) : std::nullopt,
                                   interrupt));
        programs.push_back(std::move(program));
    }
    return programs;
}

// All that two processes do with each other.
Result<void> measure_pair(const FabricFlags& flags, const Plan& plan,
                          const sys::Interrupt& interrupt, Report& report) {
    if (plan.is_veth) HANARE_TRY(enter_bench_network());
    HANARE_TRY_ASSIGN(FabricTargetProcess target,
                      FabricTargetProcess::start(flags.network, interrupt));
    HANARE_TRY_ASSIGN(const std::string address, target.next_line());
    if (plan.is_veth) HANARE_TRY(await_link(NetworkEnd::kSource));
    HANARE_TRY_ASSIGN(std::vector<ComparedProgram> compared,
                      start_compared(plan, target.pid(), interrupt));
    sys::stay_on_first_cpu();
    const FabricSetting setting = {.target = target,
                                   .address = address,
                                   .network = flags.network,
                                   .engines = engines_of(plan),
                                   .has_raw = plan.compared.has_raw,
                                   .compared = compared,
                                   .rounds = flags.quick ? kQuickRounds : kRounds};
    HANARE_TRY_ASSIGN(const OperationResults operations,
                      measure_operations(setting, plan.operations));
    report.add(operations);
    if (plan.has(kSweepCase)) {
        HANARE_TRY_ASSIGN(const SweepResults sweep, measure_sweep(setting, flags.quick));
        report.add(sweep);
    }
    const uint32_t signals = flags.quick ? kQuickSignals : kSignals;
    HANARE_TRY_ASSIGN(const PresenceResults presence,
                      measure_presence(target, address, plan.names, signals));
    report.add(presence);
    if (plan.has(kPassiveCase)) {
        HANARE_TRY_ASSIGN(const PassiveResults passive,
                          measure_passive(setting, signals, flags.quick));
        report.add(passive);
    }
    return {};
}

Result<void> run_fabric(const FabricFlags& flags, const sys::Interrupt& interrupt) {
    HANARE_TRY_ASSIGN(const Plan plan, make_plan(flags));
    HANARE_TRY_ASSIGN(JsonFile json, JsonFile::open(flags.json));
    for (const std::string& note : plan.compared.notes) {
        std::fprintf(stderr, "hanare bench fabric: left out, %s\n", note.c_str());
    }
    // Its tasks run on all CPUs, as long as this process may.
    GroupResults groups;
    if (std::ranges::any_of(plan.names, is_group_case)) {
        HANARE_TRY_ASSIGN(groups, measure_groups(interrupt, flags.quick));
    }
    Report report;
    if (!std::ranges::all_of(plan.names, is_group_case)) {
        HANARE_TRY(measure_pair(flags, plan, interrupt, report));
    }
    report.add(groups);
    return json.write(report.records());
}

}  // namespace

std::string fabric_case_names() {
    std::string names;
    for (const bench::FabricCase& each : bench::fabric_cases()) {
        names += std::string(each.name) + ",";
    }
    return names + kSweepCase + "," + presence_case_names() + "," + kPassiveCase + "," +
           kBarrierCase + "," + kMulticastCase;
}

int run_bench_fabric(const FabricFlags& flags) {
    if (flags.compared) return report(become_compared(*flags.compared, flags.beside));
    if (flags.target || flags.group_task) {
        const Result<void> result =
            flags.target ? serve_as_fabric_target(flags.network) : run_group_task();
        return result ? kExitSuccess : report(result.error());
    }
    return run_interruptible("hanare bench fabric", [&](const sys::Interrupt& interrupt) {
        return run_fabric(flags, interrupt);
    });
}

}  // namespace hanare::cli
