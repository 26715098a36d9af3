// SPDX-License-Identifier: Apache-2.0
//
// Launcher: the tasks of a job, from their start to the end of the last one.  Where one fails, the
// others are ended: SIGTERM, and SIGKILL for those that are still there after kGrace_ms.  So it is
// with signals that ask this process to end, which are passed on.
//
// Tasks of this machine are children, which the kernel kills when this process is killed; on other
// machines an agent does that, which notices that its connection to the rendezvous is over.
//
// By the main thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/launch.hpp"
#include "cli/launch_agent.hpp"
#include "fabric/secret.hpp"
#include "job/deadline.hpp"
#include "job/host_file.hpp"
#include "job/rendezvous_server.hpp"
#include "sys/child_programs.hpp"
#include "sys/input_relay.hpp"

namespace hanare::cli {

struct LaunchPlan {
    std::vector<std::string> program;  // its name and arguments
    uint32_t size = 1;
    std::vector<job::Placement> hosts = {};  // none: this machine
    std::vector<std::string> ssh = {};       // the command and its arguments
    std::string listen = {};                 // address of the rendezvous
    std::string agent = {};                  // hanare-tools, on the hosts
    bool ignores_file_size_signal = false;
};

class Launcher {
public:
    // Returns the exit status, after a line for what failed.
    static int run(const LaunchPlan& plan);

private:
    // A child: a task, or ssh with an agent behind it.
    struct Member {
        pid_t pid = -1;         // as long as it runs
        std::string host = {};  // empty: here
        uint32_t first_rank = 0;
        uint32_t count = 1;
        uint32_t ended = 0;     // of its tasks, as an agent told
        bool has_come = false;  // the agent, and its connection
        bool has_gone = false;
    };
    enum class Stage { kRunning, kEnding, kKilling, kGivingUp };

    Launcher(const LaunchPlan& plan, fabric::Secret secret,
             std::unique_ptr<job::RendezvousServer> server, sys::ChildPrograms children)
        : plan_(plan),
          secret_(std::move(secret)),
          server_(std::move(server)),
          children_(std::move(children)) {}
    static Result<Launcher> prepare(const LaunchPlan& plan);

    Result<void> start_here();
    Result<void> start_agents();
    Result<void> start_agent(const job::Placement& placement);
    AgentPlan agent_plan_of(const job::Placement& placement) const;

    int stay();
    void wait();
    void begin_input();
    void take_reports();
    void take_report(const job::RendezvousServer::Report& report, Member& member);
    void wait_for_agents();
    void take_signals();
    void take_ends();
    void forget_members();
    void note_end(const Member& member, int wait_status);
    void note_task_end(uint32_t rank, const std::string& host, int wait_status);
    void fail_job(const std::string& why, int exit_status);
    void go_on_ending();
    void begin_ending(int number, bool is_known_here);
    void send_all(int number, bool is_known_here);
    Member* find_member(uint32_t first_rank);

    const LaunchPlan plan_;
    const fabric::Secret secret_;
    std::unique_ptr<job::RendezvousServer> server_;
    sys::ChildPrograms children_;
    std::vector<Member> members_;     // that run, or whose agent does
    sys::FileDescriptor input_pipe_;  // of rank 0, until all agents have come
    std::optional<sys::InputRelay> input_;
    Stage stage_ = Stage::kRunning;
    std::optional<job::Deadline> end_of_stage_;
    int passed_signal_ = 0;
    int exit_status_ = 0;
};

}  // namespace hanare::cli
