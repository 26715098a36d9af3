// SPDX-License-Identifier: Apache-2.0
#include "cli/dlm_runs.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/units.hpp"
#include "bench/memory.hpp"
#include "bench/table.hpp"
#include "cli/conditions.hpp"
#include "cli/program_run.hpp"
#include "config/rules.hpp"
#include "sys/block_device.hpp"
#include "sys/child.hpp"
#include "sys/interrupt.hpp"

namespace hanare::cli {
namespace {

using bench::DlmPoint;
using bench::DlmProgram;
using Launch = sys::MeasuredProgram::Launch;

// Of a process beside its arrays: libraries, stacks, page tables.  Where the kernel limits it they
// count, and so it gets them in addition.
constexpr uint64_t kProcessBytes = 16 * kMiB;
constexpr uint64_t kSwapSlack = 64 * kMiB;

bool is_kernels(const DlmPoint& point) {
    return point.system == bench::kDlmSwap || point.system == bench::kDlmZram ||
           point.system == bench::kDlmMmap;
}

uint64_t local_bytes(const DlmPoint& point, uint64_t data_bytes) {
    const double part = point.local_percent / 100 * static_cast<double>(data_bytes);
    return round_up(static_cast<uint64_t>(part), kMiB);
}

Result<DlmServers::Place> place_of(const DlmPoint& point, const DlmSetting& setting) {
    if (point.store != kDlmFile) return setting.servers->place_of(point.store);
    return DlmServers::Place{"file:" + setting.directory};
}

// All that counts is said here; a configuration file would say more.
std::vector<std::string> environment_of(const DlmPoint& point, uint64_t data_bytes,
                                        const std::string& store, const DlmSetting& setting) {
    return {
        "HANARE_CONFIG=", "HANARE_LOCAL=" + config::exact_size(local_bytes(point, data_bytes)),
        "HANARE_BLOCK=" + config::PowerOfTwoOrAuto(4 * kKiB, 4 * kMiB).format(point.block_bytes),
        "HANARE_STORE=" + store, "HANARE_ENGINE=" + setting.engine};
}

Result<Launch> make_launch(const DlmProgram& program, const DlmPoint& point, uint64_t data_bytes,
                           const DlmSetting& setting, int interrupt_fd) {
    const bool is_far = point.system == bench::kDlmHanare;
    const bool is_run = point.system == bench::kDlmRun;
    const bool is_mapped = point.system == bench::kDlmMmap;
    DlmBuilds& builds = *setting.builds;
    HANARE_TRY_ASSIGN(const std::string path, is_far      ? builds.far(program, interrupt_fd)
                                              : is_mapped ? builds.mapped(program, interrupt_fd)
                                                          : builds.plain(program, interrupt_fd));
    Launch launch;
    launch.path = is_run ? "/proc/self/exe" : path;
    if (is_run) launch.arguments = {"hanare", "run", "--"};
    launch.arguments.push_back(path);
    launch.arguments.insert(launch.arguments.end(), program.arguments.begin(),
                            program.arguments.end());
    if (is_far || is_run) {
        HANARE_TRY_ASSIGN(const DlmServers::Place place, place_of(point, setting));
        launch.environment = environment_of(point, data_bytes, place.url, setting);
        launch.network_of = place.network_of;
    }
    if (is_mapped) launch.environment = {"DLM_FOLDER=" + setting.directory};
    return launch;
}

ConditionsWanted wanted_conditions(const DlmPoint& point, uint64_t data_bytes,
                                   const DlmSetting& setting) {
    ConditionsWanted wanted;
    wanted.cgroup_prefix = is_kernels(point) ? "hanare-bench" : "";
    wanted.limit_bytes = local_bytes(point, data_bytes) + kProcessBytes;
    wanted.swap = point.system == bench::kDlmSwap   ? Swap::kFile
                  : point.system == bench::kDlmZram ? Swap::kZram
                                                    : Swap::kNone;
    wanted.swap_bytes = round_up(data_bytes, kMiB) + kSwapSlack;
    wanted.directory = setting.directory;
    wanted.guardian = setting.guardian;
    return wanted;
}

// How the run ended, and what it says.
void judge(const ProgramRun& run, const std::string& output, uint64_t oom_kills,
           uint32_t patience_s, DlmOutcome& outcome) {
    outcome.run.whole_seconds = run.seconds;
    const auto result = bench::parse_dlm_result(output);
    if (run.ending == WorkerLines::Next::kTooSlow) {
        outcome.run.failure = bench::format("> %u s", patience_s);
    } else if (oom_kills > 0) {
        outcome.run.failure = "killed: out of memory";
    } else if (run.end.status != 0 || !result) {
        outcome.run.failure = run.end.status != 0 ? run.last_said() : "no result";
    } else if (!result->is_verified) {
        outcome.run.failure = "WRONG";
    } else {
        outcome.run.seconds = result->seconds;
        // The plain one has nowhere to write to.
        const bool flushes = outcome.run.point.system != bench::kDlmPlain;
        outcome.run.flush_seconds = flushes ? result->flush_seconds : -1;
        outcome.run.digest = result->digest;
        outcome.data_bytes = result->bytes;
    }
}

DlmOutcome left_out(DlmOutcome outcome, const Error& error) {
    outcome.left_out = error.text;
    return outcome;
}

}  // namespace

DlmOutcome run_dlm(const DlmProgram& program, const DlmPoint& point, uint64_t data_bytes,
                   const DlmSetting& setting, int interrupt_fd) {
    DlmOutcome outcome;
    outcome.run.point = point;
    auto launch = make_launch(program, point, data_bytes, setting, interrupt_fd);
    if (!launch) {
        outcome.is_interrupted = sys::Interrupt::requested();
        return left_out(outcome, launch.error());
    }
    sys::FileDescriptor output;
    sys::FileDescriptor input;
    for (sys::FileDescriptor* const file : {&output, &input}) {
        if (const int error = sys::open_unnamed(setting.directory, *file); error != 0) {
            return left_out(outcome,
                            fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, error,
                                       "creating a file in %.150s", setting.directory.c_str())
                                .error());
        }
    }
    launch->input = input.number();
    launch->output = output.number();
    // Earlier runs' data must not be written during this one.
    if (const auto synced = sys::sync_file_system(setting.directory); !synced) {
        return left_out(outcome, synced.error());
    }
    const uint64_t memory_bytes = data_bytes == 0 || point.local_percent == 0
                                      ? data_bytes
                                      : local_bytes(point, data_bytes) + kProcessBytes;
    if (memory_bytes != 0) {
        if (const auto warm = bench::warm_memory(memory_bytes); !warm) {
            return left_out(outcome, warm.error());
        }
    }
    auto conditions = Conditions::make(wanted_conditions(point, data_bytes, setting));
    if (!conditions) return left_out(outcome, conditions.error());
    const sys::MemoryCgroup* const cgroup = conditions->cgroup();
    if (cgroup != nullptr) launch->cgroup = cgroup->directory();
    const ProgramRun run =
        run_program(*launch, std::chrono::seconds(setting.patience_s), interrupt_fd);
    const uint64_t oom_kills = cgroup != nullptr ? cgroup->oom_kills().value_or(0) : 0;
    conditions->undo();
    if (!run.error.empty()) {
        return left_out(outcome, fail(HANARE_STATUS_SYSTEM, "%.200s", run.error.c_str()).error());
    }
    outcome.is_interrupted = run.ending == WorkerLines::Next::kInterrupted ||
                             (run.end.status != 0 && sys::Interrupt::requested());
    if (!outcome.is_interrupted) {
        judge(run, output_text(output.number()), oom_kills, setting.patience_s, outcome);
    }
    return outcome;
}

}  // namespace hanare::cli
