// SPDX-License-Identifier: Apache-2.0
#include "cli/launcher.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "cli/outcome.hpp"
#include "cli/server_secret.hpp"
#include "job/environment.hpp"
#include "job/rendezvous_client.hpp"
#include "job/wipe.hpp"
#include "sys/child.hpp"
#include "sys/pipe.hpp"
#include "sys/program_file.hpp"

namespace hanare::cli {
namespace {

using Report = job::RendezvousServer::Report;

constexpr const char* kLoopback = "127.0.0.1";
// For agents that do not end with their tasks, before their connections are given up.
constexpr int kPatience_ms = 2000;
// How soon a launcher that comes to the foreground reads from the terminal.
constexpr int kForeground_ms = 500;

}  // namespace

// ---- the start

int Launcher::run(const LaunchPlan& plan) {
    auto launcher = prepare(plan);
    if (!launcher) return report(launcher.error());
    const auto started = plan.hosts.empty() ? launcher->start_here() : launcher->start_agents();
    if (!started) {
        return plan.hosts.empty() ? report_start_failure(plan.program.front(), started.error())
                                  : report(started.error());
    }
    return launcher->stay();
}

Result<Launcher> Launcher::prepare(const LaunchPlan& plan) {
    HANARE_TRY_ASSIGN(fabric::Secret secret, fabric::Secret::make());
    job::RendezvousServer::Settings settings;
    settings.host = plan.listen;
    settings.secret = secret;
    settings.protection = job::protection_towards(plan.listen);
    settings.size = plan.size;
    // Else those that wait for a task that has failed might seem to be the ones that fail first.
    settings.owner_notes_ends = true;
    HANARE_TRY_ASSIGN(auto server, job::RendezvousServer::open(settings));
    HANARE_TRY_ASSIGN(sys::ChildPrograms children,
                      sys::ChildPrograms::begin(plan.ignores_file_size_signal));
    return Launcher(plan, std::move(secret), std::move(server), std::move(children));
}

Result<void> Launcher::start_here() {
    const LocalTasks tasks = {.program = plan_.program,
                              .first_rank = 0,
                              .count = plan_.size,
                              .size = plan_.size,
                              .rendezvous = job::text_of({plan_.listen, server_->port()}),
                              .host = kLoopback};
    std::map<pid_t, uint32_t> ranks;
    HANARE_TRY(start_tasks(children_, tasks, secret_, ranks));
    for (const auto& [pid, rank] : ranks) members_.push_back({.pid = pid, .first_rank = rank});
    return {};
}

Result<void> Launcher::start_agents() {
    for (const job::Placement& placement : plan_.hosts) HANARE_TRY(start_agent(placement));
    return {};
}

AgentPlan Launcher::agent_plan_of(const job::Placement& placement) const {
    std::error_code ignored;
    AgentPlan plan;
    plan.tasks = {.program = plan_.program,
                  .first_rank = placement.first_rank,
                  .count = placement.count,
                  .size = plan_.size,
                  .rendezvous = job::text_of({plan_.listen, server_->port()}),
                  .host = {}};
    plan.directory = std::filesystem::current_path(ignored).string();
    plan.environment = options_of_hanare();
    return plan;
}

Result<void> Launcher::start_agent(const job::Placement& placement) {
    HANARE_TRY_ASSIGN(sys::Pipe pipe, sys::make_pipe());
    sys::ChildPrograms::Launch launch;
    HANARE_TRY_ASSIGN(launch.path, sys::find_program(plan_.ssh.front()));
    launch.arguments = plan_.ssh;
    launch.arguments.insert(launch.arguments.end(),
                            {placement.host, agent_command(plan_.agent, agent_plan_of(placement))});
    launch.environment = whole_environment();
    const sys::ProgramFile file = sys::inspect_program(launch.path);
    launch.is_text = !file.is_script && !file.is_binary;
    launch.input = pipe.from.number();
    // Signals go to the tasks behind it another way.
    launch.ignores_terminal = true;
    Member member = {
        .host = placement.host, .first_rank = placement.first_rank, .count = placement.count};
    HANARE_TRY_ASSIGN(member.pid, children_.start(launch));
    members_.push_back(member);
    std::string line = secret_line(secret_);
    const job::WipeAtEnd wiping(line);
    HANARE_TRY(sys::put_into(pipe.to, std::as_bytes(std::span(line))));
    // What follows is for the task of rank 0.
    if (placement.first_rank == 0) input_pipe_ = std::move(pipe.to);
    return {};
}

// ---- while they run

int Launcher::stay() {
    while (!members_.empty() || children_.running() > 0) {
        wait();
        server_->serve();
        take_reports();
        take_signals();
        take_ends();
        if (end_of_stage_ && end_of_stage_->is_over()) go_on_ending();
    }
    return exit_status_;
}

void Launcher::wait() {
    std::array<pollfd, 3> polled = {
        pollfd{.fd = children_.fd(), .events = POLLIN, .revents = 0},
        pollfd{.fd = server_->descriptor(), .events = POLLIN, .revents = 0},
        pollfd{.fd = -1, .events = 0, .revents = 0}};
    begin_input();
    if (input_ && input_->is_over()) input_.reset();
    const bool is_held_back = input_ && input_->is_held_back();
    if (input_ && !is_held_back) {
        const short wanted = input_->waits_to_read() ? POLLIN : POLLOUT;
        polled[2] = {.fd = input_->descriptor(), .events = wanted, .revents = 0};
    }
    const int until_stage_ms = end_of_stage_ ? end_of_stage_->left_ms() : -1;
    const bool looks_again =
        is_held_back && (until_stage_ms < 0 || until_stage_ms > kForeground_ms);
    poll(polled.data(), polled.size(), looks_again ? kForeground_ms : until_stage_ms);
    if (input_ && polled[2].revents != 0) input_->go_on();
}

// Before that a line on our terminal may be the answer to what an ssh asks there.
void Launcher::begin_input() {
    if (!input_pipe_.is_open() || !std::ranges::all_of(members_, &Member::has_come)) return;
    input_.emplace(STDIN_FILENO, std::move(input_pipe_));
}

Launcher::Member* Launcher::find_member(uint32_t first_rank) {
    const auto found = std::ranges::find(members_, first_rank, &Member::first_rank);
    return found == members_.end() ? nullptr : &*found;
}

void Launcher::take_reports() {
    while (const auto report = server_->take_report()) {
        if (Member* const member = find_member(report->first_rank)) {
            take_report(*report, *member);
        } else {
            // Nobody waits for that agent any more; it ends its tasks.
            server_->release_agent(report->first_rank);
        }
    }
    forget_members();
}

void Launcher::take_report(const Report& report, Member& member) {
    switch (report.what) {
        case Report::What::kAgentCame:
            member.has_come = true;
            // It is late.
            if (stage_ != Stage::kRunning) server_->send_signal(member.first_rank, SIGTERM);
            break;
        case Report::What::kTaskEnded:
            note_task_end(report.rank, member.host, report.wait_status);
            if (++member.ended == member.count) server_->release_agent(member.first_rank);
            wait_for_agents();
            break;
        case Report::What::kAgentLost:
            member.has_gone = true;
            if (member.ended == member.count) break;
            fail_job("host " + member.host + ": the connection to it is lost",
                     kExitInternalFailure);
            break;
    }
}

// What has nothing left to do ends, but for a connection that is dead and does not know it.
void Launcher::wait_for_agents() {
    const auto is_done = [](const Member& member) { return member.ended == member.count; };
    if (stage_ != Stage::kRunning || !std::ranges::all_of(members_, is_done)) return;
    stage_ = Stage::kKilling;
    end_of_stage_.emplace(kGrace_ms);
}

void Launcher::take_signals() {
    while (const auto signal = children_.take_signal()) {
        if (stage_ != Stage::kRunning) continue;
        passed_signal_ = signal->number;
        begin_ending(signal->number, signal->from_terminal);
    }
}

// Where several have ended, one may have failed because another had: those that were killed come
// first, then who left the rendezvous first.
void Launcher::take_ends() {
    struct Ended {
        Member member;
        int status = 0;
        uint64_t departure = 0;
    };
    std::vector<Ended> all;
    while (const auto end = children_.take_end()) {
        const auto found = std::ranges::find(members_, end->pid, &Member::pid);
        if (found == members_.end()) continue;
        found->pid = -1;
        all.push_back({*found, end->status});
    }
    if (all.size() > 1) server_->serve();
    for (Ended& each : all) each.departure = server_->departure_of(each.member.first_rank);
    std::ranges::stable_sort(all, {}, [](const Ended& each) {
        return std::pair(!WIFSIGNALED(each.status), each.departure);
    });
    for (const Ended& each : all) note_end(each.member, each.status);
    forget_members();
}

// Those that have ended.  An agent may live longer than its ssh: then it is told what the others
// are told, and awaited as long as these.
void Launcher::forget_members() {
    std::erase_if(members_, [this](const Member& member) {
        const bool has_agent = member.has_come && !member.has_gone && member.ended < member.count;
        return member.pid < 0 && (!has_agent || stage_ == Stage::kGivingUp);
    });
}

void Launcher::note_end(const Member& member, int wait_status) {
    if (member.host.empty()) {
        note_task_end(member.first_rank, "", wait_status);
        return;
    }
    if (member.ended == member.count) return;
    const int status = exit_status_of(wait_status);
    fail_job("host " + member.host + ": " + plan_.ssh.front() + " ended with " +
                 sys::describe_wait_status(wait_status) +
                 (member.has_come ? ", and its tasks with it" : ", before any task began"),
             status != 0 ? status : kExitInternalFailure);
}

// ---- the end

void Launcher::note_task_end(uint32_t rank, const std::string& host, int wait_status) {
    if (wait_status == 0) {
        server_->note_end(rank);
        return;
    }
    const int status = exit_status_of(wait_status);
    // Who was asked to end, and does, needs no comment.
    if (passed_signal_ != 0 && stage_ == Stage::kEnding) {
        if (exit_status_ == 0) exit_status_ = status;
        return;
    }
    const bool is_by_us = passed_signal_ != 0 && WIFSIGNALED(wait_status);
    const std::string why =
        is_by_us ? "did not end in time and was killed" : sys::describe_wait_status(wait_status);
    fail_job(name_of_task(rank, host) + ": " + why, status);
}

// The first failure is the one that counts; those that follow are ours.
void Launcher::fail_job(const std::string& why, int exit_status) {
    if (exit_status_ != 0) return;
    exit_status_ = exit_status;
    std::fprintf(stderr, "hanare: error: %s\n", why.c_str());
    if (stage_ == Stage::kRunning) begin_ending(SIGTERM, false);
}

void Launcher::begin_ending(int number, bool is_known_here) {
    stage_ = Stage::kEnding;
    end_of_stage_.emplace(kGrace_ms);
    send_all(number, is_known_here);
}

void Launcher::go_on_ending() {
    if (stage_ == Stage::kEnding) {
        stage_ = Stage::kKilling;
        end_of_stage_.emplace(kPatience_ms);
        send_all(SIGKILL, false);
        return;
    }
    stage_ = Stage::kGivingUp;
    end_of_stage_.reset();
    for (const Member& member : members_) children_.send(member.pid, SIGKILL);
    forget_members();
}

void Launcher::send_all(int number, bool is_known_here) {
    for (const Member& member : members_) {
        if (member.host.empty()) {
            if (!is_known_here) children_.send(member.pid, number);
        } else if (!server_->send_signal(member.first_rank, number)) {
            // Nothing has begun there.  Some that ignore what the terminal sends end by this.
            children_.send(member.pid, number == SIGKILL ? SIGKILL : SIGTERM);
        }
    }
}

}  // namespace hanare::cli
