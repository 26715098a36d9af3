// SPDX-License-Identifier: Apache-2.0
#include "cli/run_session.hpp"

#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/units.hpp"
#include "cli/run_environment.hpp"
#include "control/protocol.hpp"
#include "control/server.hpp"
#include "sys/clock.hpp"
#include "sys/foreground_program.hpp"
#include "telemetry/log.hpp"

namespace hanare::cli {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kSampleEvery_ns = 100 * kNsPerMs;
// Programs that end sooner do not pay for a socket.
constexpr uint64_t kControlAfter_ns = 10 * kNsPerMs;
constexpr uint64_t kNever_ns = UINT64_MAX;
constexpr size_t kAnswerBytesMax = 4 * kMiB;

class Session {
public:
    Session(RunWatch& watch, sys::ForegroundProgram& program, RunSubject subject, bool progress)
        : watch_(watch), program_(program), subject_(std::move(subject)), progress_(progress) {
        if (subject_.options.control == config::Switch::kOn) {
            next_control_ns_ = start_ns_ + kControlAfter_ns;
        }
    }

    // Returns the status of waitpid(2).
    int stay() {
        std::optional<int> ended;
        while (!(ended = program_.handle_signals())) {
            const uint64_t now = sys::now_ns();
            if (now >= next_sample_ns_) {
                sample(false);
                next_sample_ns_ = now + kSampleEvery_ns;
            }
            if (now >= next_control_ns_) offer_control();
            control_.serve(this);
            wait_until(std::min(next_sample_ns_, next_control_ns_));
        }
        sample(true);
        progress_.clear();
        return *ended;
    }

    nlohmann::ordered_json statistics(std::optional<int> wait_status) const {
        return run_statistics(subject_, watch_, elapsed_s(), wait_status);
    }

private:
    static void answer_statistics(control::Answer& answer, void* context) {
        auto& session = *static_cast<Session*>(context);
        session.watch_.look();
        answer.text(json_text(session.statistics(std::nullopt), -1));
    }
    static constexpr control::Request kRequests[] = {{control::kStatistics, answer_statistics}};

    void offer_control() {
        next_control_ns_ = kNever_ns;
        if (const auto listening = control_.listen(control::Kind::kRun); !listening) {
            telemetry::log(telemetry::LogLevel::kInfo, "%s", listening.error().text);
        }
    }

    double elapsed_s() const { return static_cast<double>(sys::now_ns() - start_ns_) / 1e9; }

    void sample(bool is_last) {
        watch_.look();
        watch_.note_sample(elapsed_s(), is_last);
        if (!is_last) progress_.update(watch_.totals(), elapsed_s());
    }

    // Or until something happens, the end of a process too: the others get its part of the budget.
    void wait_until(uint64_t time_ns) {
        std::vector<pollfd> polled = {{.fd = program_.fd(), .events = POLLIN, .revents = 0}};
        polled.push_back({.fd = control_.descriptor(), .events = POLLIN, .revents = 0});
        const size_t first_process = polled.size();
        for (const int process : watch_.descriptors()) {
            polled.push_back({.fd = process, .events = POLLIN, .revents = 0});
        }
        const uint64_t now = sys::now_ns();
        const uint64_t rest_ns = time_ns > now ? time_ns - now : 0;
        poll(polled.data(), polled.size(), static_cast<int>(rest_ns / kNsPerMs) + 1);
        const bool is_one_over =
            std::any_of(polled.begin() + static_cast<ptrdiff_t>(first_process), polled.end(),
                        [](const pollfd& process) { return process.revents != 0; });
        if (is_one_over) watch_.look();
    }

    RunWatch& watch_;
    sys::ForegroundProgram& program_;
    RunSubject subject_;
    RunProgress progress_;
    control::Server control_{kRequests, kAnswerBytesMax};
    uint64_t start_ns_ = sys::now_ns();
    uint64_t next_sample_ns_ = 0;
    uint64_t next_control_ns_ = kNever_ns;
};

// The program's status is what counts; a result that cannot be written is a line.
void write_stats(sys::OutputFile& file, const nlohmann::ordered_json& statistics) {
    const auto written = file.replace(json_text(statistics, 1));
    if (!written) std::fprintf(stderr, "hanare: error: %s\n", written.error().text);
}

void tell(const RunPlan& plan) {
    const config::Options& options = plan.options;
    const auto source = [&](config::OptionId id) {
        return options.sources[static_cast<size_t>(id)].c_str();
    };
    std::fprintf(stderr, "hanare: local %s (%s), store %s (%s), blocks of %s, library %s\n",
                 format_size(options.local_bytes).c_str(), source(config::OptionId::local_bytes),
                 options.store.c_str(), source(config::OptionId::store),
                 format_size(options.block_bytes).c_str(),
                 plan.library.empty() ? "none" : plan.library.c_str());
}

}  // namespace

Result<int> run_session(RunPlan& plan, const RunArguments& arguments) {
    HANARE_TRY_ASSIGN(RunWatch watch,
                      RunWatch::start(plan.options.local_bytes, plan.stats.has_value()));
    const RunEnvironment wanted = {.library = plan.library,
                                   .page = watch.page_path(),
                                   .broker = plan.broker != nullptr ? plan.broker->place() : "",
                                   .verbose = plan.flags.verbose};
    const sys::ForegroundProgram::Launch launch = {
        .path = plan.program.file.path,
        .arguments = arguments.program,
        .environment =
            plan.library.empty() ? plain_environment() : program_environment(plan.options, wanted),
        .ignores_file_size_signal = arguments.ignores_file_size_signal,
        .is_text = !plan.program.file.is_script && !plan.program.file.is_binary};
    if (plan.flags.verbose) tell(plan);
    HANARE_TRY_ASSIGN(sys::ForegroundProgram program, sys::ForegroundProgram::start(launch));
    if (plan.broker != nullptr) HANARE_TRY(plan.broker->start());
    Session session(watch, program, {arguments.program, program.pid(), plan.options},
                    plan.flags.progress);
    const int status = session.stay();
    const bool is_worth_a_line = watch.totals().processes > 0 || plan.flags.verbose;
    if (is_worth_a_line && !plan.flags.quiet) {
        std::fprintf(stderr, "hanare: %s\n",
                     summary_line(watch.totals(), WIFSIGNALED(status)).c_str());
    }
    if (plan.stats) {
        nlohmann::ordered_json statistics = session.statistics(status);
        statistics["samples"] = run_timeline(watch);
        statistics["maps"] = run_maps(watch);
        write_stats(*plan.stats, statistics);
    }
    return status;
}

}  // namespace hanare::cli
