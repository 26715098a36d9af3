// SPDX-License-Identifier: Apache-2.0
#include "cli/sort_runner.hpp"

#include <unistd.h>

#include <chrono>
#include <csignal>

#include "base/units.hpp"
#include "bench/memory.hpp"
#include "bench/room.hpp"
#include "bench/table.hpp"
#include "cli/conditions.hpp"
#include "cli/program_run.hpp"
#include "config/rules.hpp"
#include "sys/block_device.hpp"
#include "sys/child.hpp"
#include "sys/interrupt.hpp"

namespace hanare::cli {
namespace {

using Launch = sys::MeasuredProgram::Launch;

constexpr uint64_t kSwapSlack = 64 * kMiB;
constexpr uint64_t kTrialLocal = 64 * kMiB;
constexpr std::chrono::seconds kTrialPatience{60};
// Where sort would put what does not fit: it is to have all in memory, and to leave no files.
constexpr const char* kNoDirectory = "/dev/null";

uint64_t position(int file) {
    const off_t at = lseek(file, 0, SEEK_CUR);
    return at > 0 ? static_cast<uint64_t>(at) : 0;
}

// What sort is doing, seen from the positions of its files.
class Watcher {
public:
    Watcher(const SortSetting& setting, std::string label, int output, Progress& progress)
        : setting_(setting), label_(std::move(label)), output_(output), progress_(progress) {}

    void look() {
        const uint64_t read = position(setting_.text);
        const uint64_t written = position(output_);
        if (written > 0) {
            show("writing", written);
        } else if (read >= setting_.text_bytes) {
            show("sorting", 0);
        } else {
            show("reading", read);
        }
    }

private:
    void show(const std::string& phase, uint64_t bytes) {
        if (phase != phase_) {
            phase_ = phase;
            progress_.begin(label_ + ": " + phase, bytes > 0 ? setting_.text_bytes : 0);
        }
        progress_.update(static_cast<double>(bytes) / static_cast<double>(setting_.text_bytes));
    }

    const SortSetting& setting_;
    std::string label_;
    int output_;
    Progress& progress_;
    std::string phase_;
};

Launch plain_launch(const SortSetting& setting, int output) {
    return {.path = setting.sort_path,
            .arguments = {"sort", "-S", std::to_string(setting.buffer_bytes) + "b", "--parallel=2",
                          "-T", kNoDirectory},
            .environment = {"LC_ALL=C"},
            .input = setting.text,
            .output = output,
            .cgroup = {},
            .user = setting.user};
}

Launch hanare_launch(const SortSetting& setting, int output, uint64_t local_bytes) {
    Launch launch = plain_launch(setting, output);
    std::vector<std::string> arguments = {"hanare", "run", "--local",
                                          config::exact_size(local_bytes)};
    arguments.insert(arguments.end(), setting.run_flags.begin(), setting.run_flags.end());
    arguments.insert(arguments.end(), {"--", setting.sort_path});
    arguments.insert(arguments.end(), launch.arguments.begin() + 1, launch.arguments.end());
    launch.path = "/proc/self/exe";
    launch.arguments = std::move(arguments);
    launch.environment.push_back("HANARE_CONFIG=");  // all that is in it is among the flags
    return launch;
}

// What sort said of itself, and the last line of `hanare run`.
void keep_said(const ProgramRun& run, SortOutcome& outcome) {
    for (const std::string& line : run.said) {
        outcome.notes.push_back(line.starts_with("hanare: ") ? line.substr(8) : line);
    }
}

// Files how the run ended and, if well, whether the result is right.
void judge(const ProgramRun& run, const SortSetting& setting, int output, uint64_t oom_kills,
           SortOutcome& outcome) {
    outcome.run.seconds = run.seconds;
    outcome.run.peak_resident_bytes = run.end.peak_resident_bytes;
    if (run.ending == WorkerLines::Next::kTooSlow) {
        outcome.run.result = bench::format("stopped after %u s", setting.patience_s);
        return;
    }
    if (run.end.status != 0) {
        outcome.run.result =
            oom_kills > 0 ? "killed: out of memory" : sys::describe_wait_status(run.end.status);
        return;
    }
    auto check = bench::check_text(output, [] { return sys::Interrupt::requested(); });
    if (!check) {
        outcome.run.result = outcome.error = check.error().text;
        return;
    }
    outcome.is_interrupted = !check->is_complete;
    if (outcome.is_interrupted) return;
    const bool is_right = check->is_sorted && check->bag == setting.bag;
    const bool is_same = !setting.expected || (check->digest[0] == setting.expected->digest[0] &&
                                               check->digest[1] == setting.expected->digest[1]);
    outcome.run.is_done = is_right && is_same;
    outcome.run.result = !is_right ? "WRONG" : is_same ? "identical" : "DIFFERENT";
    if (!setting.expected && is_right) outcome.run.result = "verified";
    if (!outcome.run.is_done) outcome.error = "the text is not the sorted one";
    outcome.check = *check;
}

SortOutcome left_out(SortOutcome outcome, const std::string& why) {
    outcome.is_left_out = true;
    outcome.notes.push_back("left out: " + why);
    return outcome;
}

ConditionsWanted wanted_conditions(const std::string& system, const SortSetting& setting) {
    return {.cgroup_prefix = system == "plain" ? "" : "hanare-demo",
            .limit_bytes = setting.limit_bytes,
            .needs_cgroup = system != "hanare",
            .swap = system == "swap" ? Swap::kFile : Swap::kNone,
            .swap_bytes = round_up(setting.plain_peak_bytes, kMiB) + kSwapSlack,
            .directory = setting.directory,
            .guardian = setting.guardian};
}

}  // namespace

SortOutcome run_sort(const std::string& system, const std::string& label,
                     const SortSetting& setting, int interrupt_fd, Progress& progress) {
    SortOutcome outcome;
    outcome.run.system = system;
    progress.begin(label, 0);
    sys::FileDescriptor output;
    if (const int error = sys::open_unnamed(setting.directory, output); error != 0) {
        return left_out(outcome, fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, error, "%s",
                                            setting.directory.c_str())
                                     .error()
                                     .text);
    }
    // Earlier runs' data must not be written during this one.
    if (const auto synced = sys::sync_file_system(setting.directory); !synced) {
        return left_out(outcome, synced.error().text);
    }
    const uint64_t memory =
        system == "plain" ? bench::sort_memory_estimate(setting.text_bytes) : setting.limit_bytes;
    if (const auto warm = bench::warm_memory(memory); !warm) {
        return left_out(outcome, warm.error().text);
    }
    auto conditions = Conditions::make(wanted_conditions(system, setting));
    if (!conditions) return left_out(outcome, conditions.error().text);
    Launch launch = system == "hanare"
                        ? hanare_launch(setting, output.number(),
                                        bench::hanare_budget_bytes(setting.limit_bytes))
                        : plain_launch(setting, output.number());
    if (conditions->cgroup() != nullptr) launch.cgroup = conditions->cgroup()->directory();
    outcome.run.is_limited = conditions->cgroup() != nullptr;
    lseek(setting.text, 0, SEEK_SET);
    Watcher watcher(setting, label, output.number(), progress);
    const ProgramRun run = run_program(launch, std::chrono::seconds(setting.patience_s),
                                       interrupt_fd, [&] { watcher.look(); });
    const uint64_t oom_kills =
        conditions->cgroup() != nullptr ? conditions->cgroup()->oom_kills().value_or(0) : 0;
    for (const std::string& note : conditions->undo()) outcome.notes.push_back(note);
    if (!run.error.empty()) return left_out(outcome, run.error);
    outcome.is_interrupted = run.ending == WorkerLines::Next::kInterrupted ||
                             (run.end.status != 0 && sys::Interrupt::requested());
    if (outcome.is_interrupted) return outcome;
    progress.begin(label + ": checking", 0);
    keep_said(run, outcome);
    judge(run, setting, output.number(), oom_kills, outcome);
    return outcome;
}

std::string try_as_user(const sys::UserIds& user, const SortSetting& setting, int interrupt_fd) {
    sys::FileDescriptor output;
    if (const int error = sys::open_unnamed(setting.directory, output); error != 0) {
        return std::string("no file in ") + setting.directory;
    }
    Launch launch = hanare_launch(setting, output.number(), kTrialLocal);
    launch.user = user;
    launch.arguments.emplace_back("--version");
    const ProgramRun run = run_program(launch, kTrialPatience, interrupt_fd);
    return run.error.empty() && run.end.status == 0 ? "" : run.last_said();
}

Result<void> check_gnu_sort(const SortSetting& setting, int interrupt_fd) {
    sys::FileDescriptor output;
    if (const int error = sys::open_unnamed(setting.directory, output); error != 0) {
        return fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, error, "creating a file in %.150s",
                          setting.directory.c_str());
    }
    Launch launch = plain_launch(setting, output.number());
    launch.arguments = {"sort", "--version"};
    const ProgramRun run = run_program(launch, kTrialPatience, interrupt_fd);
    char text[256] = {};
    const ssize_t got = pread(output.number(), text, sizeof text - 1, 0);
    if (run.error.empty() && got > 0 && std::string(text).find("GNU") != std::string::npos) {
        return {};
    }
    if (sys::Interrupt::requested()) return {};
    return fail(HANARE_STATUS_NOT_FOUND, "%.150s is not GNU sort (%.100s); install coreutils",
                setting.sort_path.c_str(), run.last_said().c_str());
}

}  // namespace hanare::cli
