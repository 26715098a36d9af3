// SPDX-License-Identifier: Apache-2.0
#include "cli/stencil_systems.hpp"

#include <algorithm>
#include <cstdio>

#include "base/units.hpp"
#include "bench/memory.hpp"
#include "bench/room.hpp"
#include "bench/table.hpp"
#include "cli/commands.hpp"
#include "cli/conditions.hpp"
#include "cli/program_run.hpp"
#include "cli/stencil_devito.hpp"
#include "sys/block_device.hpp"
#include "sys/temporary_folder.hpp"

namespace hanare::cli {
namespace {

using Kind = StencilRun::Kind;
using Launch = sys::MeasuredProgram::Launch;

constexpr int kExitDoesNotFit = 3;  // of a worker

Launch launch_of(const bench::StencilSystem& system, const bench::StencilJob& job,
                 const StencilSetting& setting) {
    const std::string text = nlohmann::json(job).dump();
    Launch launch;
    if (system.kind == bench::kStencilDevito) {
        launch.path = setting.python;
        launch.arguments = {setting.python, "-c", kDevitoProgram, text};
        return launch;
    }
    launch.path = "/proc/self/exe";
    launch.arguments = {"hanare", "bench", "stencil", "--worker", text};
    launch.environment = {"HANARE_CONFIG="};
    return launch;
}

ConditionsWanted wanted_conditions(const bench::StencilSystem& system, uint64_t limit_bytes,
                                   const StencilSetting& setting) {
    ConditionsWanted wanted;
    wanted.cgroup_prefix = limit_bytes != 0 ? "hanare-bench-stencil" : "";
    wanted.limit_bytes = limit_bytes;
    wanted.needs_cgroup = !system.is_hanare();  // a grid keeps its budget by itself
    wanted.directory = setting.directory;
    wanted.guardian = &setting.guardian;
    return wanted;
}

// The last line that it has written.
std::optional<bench::StencilOutcome> parse_outcome(const std::string& output) {
    const size_t end = output.find_last_not_of('\n');
    if (end == std::string::npos) return std::nullopt;
    const size_t begin = output.find_last_of('\n', end) + 1;
    const auto said = nlohmann::json::parse(output.substr(begin, end + 1 - begin), nullptr, false);
    if (!said.is_object() || !said.contains("seconds") || !said.contains("result")) {
        return std::nullopt;
    }
    try {
        // Devito's process tells of time and result alone.
        auto all = nlohmann::json(bench::StencilOutcome{});
        all.update(said);
        return all.get<bench::StencilOutcome>();
    } catch (const nlohmann::json::exception&) {
        return std::nullopt;
    }
}

StencilRun judge(const bench::StencilSystem& system, const ProgramRun& run,
                 const std::string& output, uint64_t oom_kills, const StencilSetting& setting) {
    StencilRun result;
    const auto outcome = parse_outcome(output);
    if (run.is_good() && outcome) {
        result.kind = Kind::kDone;
        result.outcome = *outcome;
        return result;
    }
    if (run.ending == WorkerLines::Next::kTooSlow) {
        result.text =
            bench::format("stopped after %lld s", static_cast<long long>(setting.patience.count()));
    } else if (oom_kills > 0) {
        result.text = "killed: out of the cgroup's memory";
    } else {
        result.text = run.is_good() ? "no result" : run.last_said();
    }
    const bool has_exited = run.error.empty() && WIFEXITED(run.end.status);
    if (has_exited && WEXITSTATUS(run.end.status) == kExitDoesNotFit) {
        result.kind = Kind::kDoesNotFit;
    } else if (system.kind == bench::kStencilDevito) {
        result.kind = Kind::kLeftOut;
        result.text = "skipped: " + result.text + " (" + setting.python + "; see --python)";
    }
    return result;
}

}  // namespace

Result<StencilRun> run_stencil_system(const bench::StencilSystem& system, bench::StencilJob job,
                                      uint64_t limit_bytes, const StencilSetting& setting) {
    if (system.kind == bench::kStencilDevito && setting.python.empty()) {
        return StencilRun{.kind = Kind::kLeftOut, .text = "skipped: no Python interpreter"};
    }
    // Of a worker that is killed, too, nothing stays.
    HANARE_TRY_ASSIGN(
        const sys::TemporaryFolder folder,
        sys::TemporaryFolder::make(setting.directory, "hanare-bench-stencil", &setting.guardian));
    job.directory = folder.path();
    sys::FileDescriptor input;
    sys::FileDescriptor output;
    for (sys::FileDescriptor* const file : {&input, &output}) {
        if (const int error = sys::open_unnamed(setting.directory, *file); error != 0) {
            return fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, error, "creating a file in %.150s",
                              setting.directory.c_str());
        }
    }
    // Earlier runs' data must not be written during this one.
    HANARE_TRY(sys::sync_file_system(setting.directory));
    HANARE_TRY(bench::warm_memory(limit_bytes != 0 ? limit_bytes : job.shape().domain_bytes()));
    auto conditions = Conditions::make(wanted_conditions(system, limit_bytes, setting));
    if (!conditions) {
        return StencilRun{.kind = Kind::kLeftOut,
                          .text = std::string("skipped: ") + conditions.error().text};
    }
    Launch launch = launch_of(system, job, setting);
    launch.input = input.number();
    launch.output = output.number();
    const sys::MemoryCgroup* const cgroup = conditions->cgroup();
    if (cgroup != nullptr) launch.cgroup = cgroup->directory();
    const ProgramRun run = run_program(launch, setting.patience, setting.interrupt.fd());
    const uint64_t oom_kills = cgroup != nullptr ? cgroup->oom_kills().value_or(0) : 0;
    const std::string note = conditions->note();
    conditions->undo();
    if (sys::Interrupt::requested()) return fail(HANARE_STATUS_BUSY, "interrupted");
    StencilRun result = judge(system, run, output_text(output.number()), oom_kills, setting);
    result.note = note;
    return result;
}

int run_stencil_worker(const std::string& text) {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (json.is_discarded()) {
        return report(Error{HANARE_STATUS_INVALID_ARGUMENT, 0, "--worker: not a job"});
    }
    const auto outcome = bench::run_stencil(json.get<bench::StencilJob>());
    if (!outcome) {
        report(outcome.error());
        return outcome.error().status == HANARE_STATUS_LIMIT ? kExitDoesNotFit
                                                             : kExitInternalFailure;
    }
    std::printf("%s\n", nlohmann::json(*outcome).dump().c_str());
    return kExitSuccess;
}

}  // namespace hanare::cli
