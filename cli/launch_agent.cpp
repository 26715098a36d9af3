// SPDX-License-Identifier: Apache-2.0
#include "cli/launch_agent.hpp"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "cli/outcome.hpp"
#include "cli/server_secret.hpp"
#include "job/deadline.hpp"
#include "job/environment.hpp"
#include "job/rendezvous_client.hpp"
#include "sys/event.hpp"
#include "sys/host_address.hpp"

namespace hanare::cli {
namespace {

using job::Deadline;
using job::MessageKind;
using job::MessageStream;

constexpr int kConnect_ms = 60'000;
constexpr int kEndOfLauncher_ms = 10'000;

class Agent {
public:
    Agent(AgentPlan plan, fabric::Secret secret, MessageStream stream, sys::ChildPrograms children)
        : plan_(std::move(plan)),
          secret_(std::move(secret)),
          stream_(std::move(stream)),
          children_(std::move(children)) {}

    int run() {
        const auto started = start_tasks(children_, plan_.tasks, secret_, ranks_);
        if (!started) {
            end_all();
            tell_of_failure(started.error());
        }
        for (;;) {
            // What came together with the welcome shows nowhere else.
            if (!take_messages()) return kExitInternalFailure;  // all are killed
            while (const auto signal = children_.take_signal()) send_all(signal->number);
            while (const auto end = children_.take_end()) {
                const auto of_task = ranks_.find(end->pid);
                if (of_task != ranks_.end()) tell(of_task->second, end->status);
            }
            if (children_.running() == 0) break;
            sys::wait_until_readable(children_.fd(), stream_.descriptor(), -1);
        }
        await_launcher();
        return kExitSuccess;
    }

private:
    // Those that began before one could not be started, and nobody is told.
    void end_all() {
        send_all(SIGKILL);
        ranks_.clear();
        const Deadline deadline(kEndOfLauncher_ms);
        while (children_.running() > 0 && !deadline.is_over()) {
            sys::wait_until_readable(children_.fd(), -1, deadline.left_ms());
            while (children_.take_signal()) {
            }
            while (children_.take_end()) {
            }
        }
    }

    // As if each had ended with the status that a shell would give it.
    void tell_of_failure(const Error& error) {
        constexpr int kStatusShift = 8;
        const int status = report_start_failure(plan_.tasks.program.front(), error);
        for (uint32_t i = 0; i < plan_.tasks.count; ++i) {
            tell(plan_.tasks.first_rank + i, status << kStatusShift);
        }
    }

    void tell(uint32_t rank, int wait_status) {
        stream_.queue({.kind = MessageKind::kEnded,
                       .rank = rank,
                       .value = static_cast<uint32_t>(wait_status)});
        (void)stream_.flush(Deadline(kEndOfLauncher_ms));
    }

    // Whether the launcher is still there.
    bool take_messages() {
        for (;;) {
            job::Message message;
            switch (stream_.receive(message)) {
                case MessageStream::Incoming::kNothing: return true;
                case MessageStream::Incoming::kEnd:
                case MessageStream::Incoming::kNonsense: return false;
                case MessageStream::Incoming::kMessage: break;
            }
            if (message.kind != MessageKind::kSignal) return false;
            send_all(static_cast<int>(message.value));
        }
    }

    void send_all(int number) {
        for (const auto& [pid, rank] : ranks_) children_.send(pid, number);
    }

    // It closes the connection when it knows of all ends.
    void await_launcher() {
        const Deadline deadline(kEndOfLauncher_ms);
        while (stream_.receive(deadline)) {
        }
    }

    const AgentPlan plan_;
    const fabric::Secret secret_;
    MessageStream stream_;
    sys::ChildPrograms children_;
    std::map<pid_t, uint32_t> ranks_;
};

// What ssh, or what stands in for it, was told to ignore is not the tasks' concern.
void reset_signals() {
    for (const int number : {SIGINT, SIGHUP, SIGQUIT, SIGTERM}) std::signal(number, SIG_DFL);
}

void enter_place(const AgentPlan& plan) {
    for (const std::string& entry : plan.environment) {
        const size_t equal_sign = entry.find('=');
        if (equal_sign == entry.npos) continue;
        setenv(entry.substr(0, equal_sign).c_str(), entry.c_str() + equal_sign + 1, 1);
    }
    if (!plan.directory.empty() && chdir(plan.directory.c_str()) != 0) {
        std::fprintf(stderr, "hanare: note: %s: %s; tasks begin in the home directory\n",
                     plan.directory.c_str(), std::strerror(errno));
    }
}

Result<MessageStream> register_agent(const LocalTasks& tasks, const fabric::Secret& secret) {
    const Deadline deadline(kConnect_ms);
    job::RendezvousPlace place;
    HANARE_TRY_ASSIGN(place.endpoint, job::parse_endpoint("--rendezvous", tasks.rendezvous));
    place.secret = secret;
    place.protection = job::protection_towards(place.endpoint.host);
    HANARE_TRY_ASSIGN(MessageStream stream, job::connect_to_rendezvous(place, deadline));
    stream.queue({.kind = MessageKind::kAgent,
                  .rank = tasks.first_rank,
                  .value = tasks.count,
                  .data = job::data_of(0)});
    HANARE_TRY(stream.flush(deadline));
    HANARE_TRY_ASSIGN(const job::Message welcome, stream.receive(deadline));
    if (welcome.kind == MessageKind::kWelcome && welcome.status() == HANARE_STATUS_OK) {
        return stream;
    }
    return fail(HANARE_STATUS_PEER_LOST, "hanare launch does not expect these tasks");
}

Result<Agent> prepare_agent(AgentPlan plan) {
    HANARE_TRY_ASSIGN(fabric::Secret secret, read_secret_line(kConnect_ms));
    HANARE_TRY_ASSIGN(MessageStream stream, register_agent(plan.tasks, secret));
    HANARE_TRY_ASSIGN(plan.tasks.host, sys::local_address(stream.descriptor()));
    HANARE_TRY_ASSIGN(sys::ChildPrograms children,
                      sys::ChildPrograms::begin(plan.tasks.ignores_file_size_signal));
    return Agent(std::move(plan), std::move(secret), std::move(stream), std::move(children));
}

}  // namespace

int run_agent(AgentPlan plan) {
    reset_signals();
    enter_place(plan);
    auto agent = prepare_agent(std::move(plan));
    return agent ? agent->run() : report(agent.error());
}

}  // namespace hanare::cli
