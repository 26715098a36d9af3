// SPDX-License-Identifier: Apache-2.0
#include "cli/pager_station.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "bench/table.hpp"
#include "sys/interrupt.hpp"

namespace hanare::cli {
namespace {

using Kind = PagerReply::Kind;

constexpr std::chrono::seconds kPatience{300};  // for a peer and one request
constexpr std::chrono::seconds kHanarePatience{3600};
constexpr std::chrono::seconds kPatienceAtTheEnd{60};

// Drops letters that the name of a directory should not have.
std::string as_file_name(std::string name) {
    std::replace(name.begin(), name.end(), ':', '.');
    return name;
}

bool is_cold(bench::PagerCase which) {
    using bench::PagerCase;
    return which == PagerCase::kSeqReadCold || which == PagerCase::kStrided ||
           which == PagerCase::kTriad;
}

}  // namespace

Result<void> PagerStation::make_conditions(PagerJob& job) {
    const std::string& kind = system_.kind;
    HANARE_TRY_ASSIGN(
        conditions_,
        Conditions::make({.cgroup_prefix = system_.is_limited()
                                               ? "hanare-bench-" + as_file_name(system_.name)
                                               : "",
                          .limit_bytes = setting_.plan.limit_bytes,
                          .needs_cgroup = !system_.is_hanare(),
                          .swap = kind == "swap"   ? Swap::kFile
                                  : kind == "zram" ? Swap::kZram
                                                   : Swap::kNone,
                          .swap_bytes = setting_.plan.swap_bytes,
                          .directory = job.directory,
                          .guardian = setting_.guardian}));
    if (conditions_->cgroup() != nullptr) job.cgroup = conditions_->cgroup()->directory();
    if (!conditions_->note().empty()) notes_.push_back(conditions_->note());
    return {};
}

PagerReply PagerStation::open(int threads, uint64_t seed) {
    PagerJob job = setting_.job;
    job.system = system_.name;
    job.kind = system_.kind;
    job.threads = threads;
    job.seed = seed;
    if (!system_.engine.empty()) job.engine = system_.engine;
    if (const auto made = make_conditions(job); !made) {
        return {Kind::kLeftOut, made.error().text};
    }
    auto child =
        sys::Child::start({"hanare", "bench", "pager", "--worker", nlohmann::json(job).dump()},
                          sys::Child::Input::kFromUs);
    if (!child) return {Kind::kFailed, child.error().text};
    child_ = std::move(*child);
    lines_.emplace(child_->output_fd(), setting_.interrupt_fd);
    return await("ready");
}

PagerReply PagerStation::prepare(bench::PagerCase which) {
    PagerReply reply = ask({{"prepare", bench::pager_case_name(which)}});
    // Pages that were written to a swap file may still be in memory as well.
    if (reply.is_done() && is_cold(which) && system_.kind == "swap") cgroup()->reclaim();
    return reply;
}

PagerReply PagerStation::measure(bench::PagerCase which) {
    return ask({{"measure", bench::pager_case_name(which)}});
}

PagerReply PagerStation::ask(const nlohmann::json& command) {
    // A worker that has died says so at the end of its output.
    (void)child_->send(command.dump() + "\n");
    return await(command.contains("prepare") ? "prepared" : "results");
}

PagerReply PagerStation::await(const char* expected) {
    const auto patience = system_.is_hanare() ? kHanarePatience : kPatience;
    const auto deadline = WorkerLines::Clock::now() + patience;
    std::string line;
    switch (lines_->next(deadline, line)) {
        case WorkerLines::Next::kInterrupted: return {Kind::kInterrupted};
        case WorkerLines::Next::kClosed: return ended();
        case WorkerLines::Next::kTooSlow:
            return {Kind::kFailed,
                    bench::format("no answer in %d s", static_cast<int>(patience.count()))};
        case WorkerLines::Next::kLine: break;
    }
    const auto message = nlohmann::json::parse(line, nullptr, false);
    if (message.is_discarded()) return {Kind::kFailed, "its process said: " + line};
    if (message.contains("error")) {
        const auto status = message["status"].get<int>();
        const Kind kind = status == HANARE_STATUS_CORRUPT         ? Kind::kWrong
                          : status == HANARE_STATUS_NOT_SUPPORTED ? Kind::kLeftOut
                                                                  : Kind::kFailed;
        return {kind, message["error"].get<std::string>()};
    }
    if (!message.contains(expected)) return {Kind::kFailed, "its process said: " + line};
    PagerReply reply = {Kind::kDone};
    if (message.contains("results")) {
        reply.results = message["results"].get<std::vector<PagerResult>>();
    }
    return reply;
}

PagerReply PagerStation::ended() {
    // A terminal's Ctrl-C reaches the worker as well, perhaps before us.
    if (sys::Interrupt::requested()) return {Kind::kInterrupted};
    const auto status = child_->wait();
    std::string text = status ? sys::describe_wait_status(*status) : status.error().text;
    if (cgroup() != nullptr && cgroup()->oom_kills().value_or(0) > 0)
        text += ", out of the cgroup's memory";
    return {Kind::kFailed, text};
}

void PagerStation::close() {
    if (child_) {
        child_->end_input();
        const auto deadline = WorkerLines::Clock::now() + kPatienceAtTheEnd;
        std::string line;
        while (lines_->next(deadline, line) == WorkerLines::Next::kLine) {
        }
        child_->kill();
        (void)child_->wait();
        child_.reset();
    }
    if (!conditions_) return;
    for (std::string& note : conditions_->undo()) notes_.push_back(std::move(note));
    conditions_.reset();
}

}  // namespace hanare::cli
