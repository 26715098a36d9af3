// SPDX-License-Identifier: Apache-2.0
#include "cli/demo_runner.hpp"

#include <chrono>
#include <optional>

#include "base/units.hpp"
#include "bench/memory.hpp"
#include "bench/table.hpp"
#include "cli/conditions.hpp"
#include "cli/worker_lines.hpp"
#include "sys/block_device.hpp"
#include "sys/child.hpp"
#include "sys/interrupt.hpp"

namespace hanare::cli {
namespace {

using Kind = DemoOutcome::Kind;

constexpr uint32_t kHanarePatience_s = 3600;

// What the worker said, line by line.
class Conversation {
public:
    Conversation(std::string label, uint64_t matrix_bytes, Progress& progress)
        : label_(std::move(label)), matrix_bytes_(matrix_bytes), progress_(progress) {}

    void hear(const std::string& line) {
        const auto message = nlohmann::json::parse(line, nullptr, false);
        if (message.is_discarded()) return;  // the end of a worker that was killed while it wrote
        if (message.contains("phase")) return show(message);
        if (message.contains("y")) {
            for (const auto& bits : message["y"]) y_.push_back(bits.get<uint64_t>());
        }
        if (message.contains("result")) result_ = message["result"].get<DemoResult>();
        if (message.contains("error")) error_ = message["error"].get<std::string>();
    }

    const std::optional<DemoResult>& result() const { return result_; }
    const std::string& error() const { return error_; }
    const std::vector<uint64_t>& y() const { return y_; }

private:
    void show(const nlohmann::json& message) {
        const int phase = message["phase"].get<int>();
        if (phase != phase_) {
            phase_ = phase;
            const auto name = bench::matv_phase_name(static_cast<bench::MatvPhase>(phase));
            progress_.begin(
                label_ + ": " + name,
                phase == static_cast<int>(bench::MatvPhase::kWriteX) ? 0 : matrix_bytes_);
        }
        progress_.update(message["done"].get<double>() / message["total"].get<double>());
    }

    std::string label_;
    uint64_t matrix_bytes_;
    Progress& progress_;
    int phase_ = -1;
    std::optional<DemoResult> result_;
    std::string error_;
    std::vector<uint64_t> y_;
};

// Passes the worker's lines on until it closes its end, a signal asks us to stop or the time is up.
WorkerLines::Next listen(int worker_fd, int interrupt_fd, uint32_t patience_s,
                         Conversation& conversation) {
    const auto deadline = WorkerLines::Clock::now() + std::chrono::seconds(patience_s);
    WorkerLines lines(worker_fd, interrupt_fd);
    std::string line;
    while (true) {
        const WorkerLines::Next next = lines.next(deadline, line);
        if (next != WorkerLines::Next::kLine) return next;
        conversation.hear(line);
    }
}

bench::DemoRun to_run(const std::string& system, const DemoResult& result) {
    bench::DemoRun run;
    run.system = system;
    run.times = {{result.write_a_s, result.write_x_s, result.multiply_s}};
    run.moved_known = result.moved_known;
    run.read_bytes = result.read_bytes;
    run.written_bytes = result.written_bytes;
    run.faults = result.faults;
    run.major_faults = result.major_faults;
    run.peak_resident_bytes = result.peak_resident_bytes;
    return run;
}

// The worker's life inside conditions that exist already.
DemoOutcome run_worker(const DemoJob& job, const std::string& label, const DemoSetting& setting,
                       int interrupt_fd, Progress& progress) {
    auto child = sys::Child::start({"hanare", "demo", "--worker", nlohmann::json(job).dump()});
    if (!child) return {.kind = Kind::kFailed, .text = child.error().text};
    Conversation conversation(label, setting.plan.matrix_bytes, progress);
    const uint32_t patience_s = job.system == "hanare" ? kHanarePatience_s : setting.patience_s;
    const WorkerLines::Next ending =
        listen(child->output_fd(), interrupt_fd, patience_s, conversation);
    if (ending != WorkerLines::Next::kClosed) child->kill();
    const auto status = child->wait();
    if (ending == WorkerLines::Next::kInterrupted) return {.kind = Kind::kInterrupted};
    if (ending == WorkerLines::Next::kTooSlow) {
        return {.kind = Kind::kFailed, .text = bench::format("stopped after %u s", patience_s)};
    }
    if (!conversation.error().empty()) return {.kind = Kind::kFailed, .text = conversation.error()};
    if (!conversation.result() || !status || *status != 0) {
        // A terminal's Ctrl-C reaches the worker as well, perhaps before us.
        if (sys::Interrupt::requested()) return {.kind = Kind::kInterrupted};
        return {.kind = Kind::kFailed,
                .text = status ? sys::describe_wait_status(*status) : status.error().text};
    }
    const std::string wrong = bench::matv_mismatch(conversation.y(), setting.reference);
    if (!wrong.empty()) return {.kind = Kind::kWrong, .text = wrong};
    return {.kind = Kind::kDone, .run = to_run(job.system, *conversation.result())};
}

}  // namespace

DemoOutcome run_demo_system(const std::string& system, const std::string& label,
                            const DemoSetting& setting, int interrupt_fd, Progress& progress) {
    progress.begin(label, 0);
    DemoJob job = setting.job;
    job.system = system;
    // Earlier runs' data must not be written during this one.
    if (const auto synced = sys::sync_file_system(job.directory); !synced) {
        return {.kind = Kind::kFailed, .text = synced.error().text};
    }
    const uint64_t memory_bytes =
        system == "plain" ? setting.plan.matrix_bytes : setting.plan.limit_bytes;
    if (const auto warm = bench::warm_memory(memory_bytes); !warm) {
        return {.kind = Kind::kFailed, .text = warm.error().text};
    }
    auto conditions = Conditions::make({.cgroup_prefix = system == "plain" ? "" : "hanare-demo",
                                        .limit_bytes = setting.plan.limit_bytes,
                                        .needs_cgroup = system != "hanare",
                                        .swap = system == "swap" ? Swap::kFile : Swap::kNone,
                                        .swap_bytes = setting.plan.swap_bytes,
                                        .directory = job.directory,
                                        .guardian = setting.guardian});
    if (!conditions) return {.kind = Kind::kLeftOut, .text = conditions.error().text};
    const sys::MemoryCgroup* const cgroup = conditions->cgroup();
    if (cgroup != nullptr) job.cgroup = cgroup->directory();
    DemoOutcome outcome = run_worker(job, label, setting, interrupt_fd, progress);
    outcome.note = conditions->note();
    outcome.run.limited = cgroup != nullptr;
    if (cgroup != nullptr) outcome.run.cgroup_peak_bytes = cgroup->peak_bytes().value_or(0);
    for (const std::string& note : conditions->undo()) outcome.note += note;
    return outcome;
}

}  // namespace hanare::cli
