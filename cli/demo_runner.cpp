// SPDX-License-Identifier: Apache-2.0
#include "cli/demo_runner.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>

#include "base/units.hpp"
#include "bench/memory.hpp"
#include "bench/table.hpp"
#include "sys/block_device.hpp"
#include "sys/cgroup.hpp"
#include "sys/child.hpp"
#include "sys/interrupt.hpp"
#include "sys/swap_file.hpp"

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

enum class Ending { kClosed, kInterrupted, kTooSlow };

// Passes the worker's lines on until it closes its end, a signal asks us to stop or the time is up.
Ending listen(int worker_fd, int interrupt_fd, uint32_t patience_s, Conversation& conversation) {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + std::chrono::seconds(patience_s);
    std::string pending;
    char buffer[16384];
    while (true) {
        pollfd waited[2] = {{worker_fd, POLLIN, 0}, {interrupt_fd, POLLIN, 0}};
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
        if (left <= 0) return Ending::kTooSlow;
        if (poll(waited, 2, static_cast<int>(left)) < 0 && errno != EINTR) return Ending::kClosed;
        if (sys::Interrupt::requested()) return Ending::kInterrupted;
        if (waited[0].revents == 0) continue;
        const ssize_t got = read(worker_fd, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return Ending::kClosed;
        pending.append(buffer, static_cast<size_t>(got));
        size_t begin = 0;
        for (size_t end; (end = pending.find('\n', begin)) != std::string::npos; begin = end + 1) {
            conversation.hear(pending.substr(begin, end - begin));
        }
        pending.erase(0, begin);
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
    const Ending ending = listen(child->output_fd(), interrupt_fd, patience_s, conversation);
    if (ending != Ending::kClosed) child->kill();
    const auto status = child->wait();
    if (ending == Ending::kInterrupted) return {.kind = Kind::kInterrupted};
    if (ending == Ending::kTooSlow) {
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
    // Removed in reverse order, after the worker has ended.
    std::optional<sys::SwapFile> swap;
    std::optional<sys::MemoryCgroup> cgroup;
    std::string note;
    if (system != "plain") {
        auto created =
            sys::MemoryCgroup::create("hanare-demo", setting.plan.limit_bytes, setting.guardian);
        if (created) {
            cgroup = std::move(*created);
            job.cgroup = cgroup->directory();
        } else if (system == "hanare") {
            note = std::string("without a cgroup, by its own budget: ") + created.error().text;
        } else {
            return {.kind = Kind::kLeftOut,
                    .text = std::string("no memory cgroup: ") + created.error().text};
        }
    }
    if (system == "swap") {
        auto created =
            sys::SwapFile::create(job.directory, setting.plan.swap_bytes, setting.guardian);
        if (!created) return {.kind = Kind::kLeftOut, .text = created.error().text};
        swap = std::move(*created);
    }
    DemoOutcome outcome = run_worker(job, label, setting, interrupt_fd, progress);
    outcome.note = note;
    outcome.run.limited = cgroup.has_value();
    if (cgroup) {
        outcome.run.cgroup_peak_bytes = cgroup->peak_bytes().value_or(0);
        if (const auto removed = cgroup->remove(); !removed) outcome.note += removed.error().text;
    }
    if (swap) {
        if (const auto removed = swap->remove(); !removed) outcome.note += removed.error().text;
    }
    return outcome;
}

}  // namespace hanare::cli
