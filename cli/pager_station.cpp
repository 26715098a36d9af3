// SPDX-License-Identifier: Apache-2.0
#include "cli/pager_station.hpp"

#include <algorithm>
#include <chrono>

#include "base/units.hpp"
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

// What the system needs around it; a reply when it cannot have that.
std::optional<PagerReply> PagerStation::make_conditions(PagerJob& job) {
    if (system_.kind == "swap") {
        auto created =
            sys::SwapFile::create(job.directory, setting_.plan.swap_bytes, setting_.guardian);
        if (!created) return PagerReply{Kind::kLeftOut, created.error().text};
        swap_ = std::move(*created);
    }
    if (system_.kind == "zram") {
        auto created =
            sys::ZramSwap::create(job.directory, setting_.plan.swap_bytes, setting_.guardian);
        if (!created) return PagerReply{Kind::kLeftOut, created.error().text};
        zram_ = std::move(*created);
    }
    if (!system_.is_limited()) return std::nullopt;
    auto created = sys::MemoryCgroup::create("hanare-bench-" + as_file_name(system_.name),
                                             setting_.plan.limit_bytes, setting_.guardian);
    if (created) {
        cgroup_ = std::move(*created);
        job.cgroup = cgroup_->directory();
        if (!system_.swaps()) (void)cgroup_->keep_out_of_swap();  // which most machines do not have
        return std::nullopt;
    }
    if (system_.is_hanare()) {
        notes_.push_back(std::string("without a cgroup, by its own budget: ") +
                         created.error().text);
        return std::nullopt;
    }
    return PagerReply{Kind::kLeftOut, std::string("no memory cgroup: ") + created.error().text};
}

PagerReply PagerStation::open(int threads, uint64_t seed) {
    PagerJob job = setting_.job;
    job.system = system_.name;
    job.kind = system_.kind;
    job.threads = threads;
    job.seed = seed;
    if (!system_.engine.empty()) job.engine = system_.engine;
    if (auto reply = make_conditions(job)) return *reply;
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
    if (reply.is_done() && is_cold(which) && system_.kind == "swap" && cgroup_) cgroup_->reclaim();
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
    if (cgroup_ && cgroup_->oom_kills().value_or(0) > 0) text += ", out of the cgroup's memory";
    return {Kind::kFailed, text};
}

void PagerStation::note_zram() {
    if (!zram_) return;
    if (const auto peak = zram_->peak_bytes()) {
        notes_.push_back("its device held " + format_size(*peak) +
                         " of memory beyond the limit; the data cannot be compressed");
    }
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
    note_zram();
    const auto undo = [this](auto& condition) {
        if (!condition) return;
        if (const auto removed = condition->remove(); !removed) {
            notes_.push_back(removed.error().text);
        }
        condition.reset();
    };
    undo(cgroup_);
    undo(zram_);
    undo(swap_);
}

}  // namespace hanare::cli
