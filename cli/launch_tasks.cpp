// SPDX-License-Identifier: Apache-2.0
//
// Starting tasks on the machine on which this runs, for launcher and agent alike.
#include "cli/launch.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "cli/outcome.hpp"
#include "cli/run_program.hpp"
#include "job/environment.hpp"
#include "sys/foreground_program.hpp"
#include "sys/pipe.hpp"
#include "sys/program_file.hpp"
#include "sys/sealed_memory.hpp"

namespace hanare::cli {
namespace {

constexpr const char* kOfOneTask[] = {job::kRankVariable,
                                      job::kSizeVariable,
                                      job::kRendezvousVariable,
                                      job::kHostVariable,
                                      job::kSecretDescriptorVariable,
                                      job::kSecretFileVariable};

// What a task finds in its environment.
std::vector<std::string> environment_of(const LocalTasks& tasks, uint32_t rank,
                                        int secret_descriptor) {
    std::vector<std::string> entries = whole_environment();
    std::erase_if(entries, is_of_one_task);
    const auto set = [&](const char* name, const std::string& value) {
        entries.push_back(std::string(name) + "=" + value);
    };
    set(job::kRankVariable, std::to_string(rank));
    set(job::kSizeVariable, std::to_string(tasks.size));
    set(job::kRendezvousVariable, tasks.rendezvous);
    set(job::kHostVariable, tasks.host);
    set(job::kSecretDescriptorVariable, std::to_string(secret_descriptor));
    return entries;
}

}  // namespace

std::vector<std::string> whole_environment() {
    std::vector<std::string> entries;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        entries.emplace_back(*entry);
    }
    return entries;
}

bool is_of_one_task(std::string_view entry) {
    const std::string_view name = entry.substr(0, entry.find('='));
    return std::ranges::find(kOfOneTask, name) != std::end(kOfOneTask);
}

Result<void> start_tasks(sys::ChildPrograms& children, const LocalTasks& tasks,
                         const fabric::Secret& secret, std::map<pid_t, uint32_t>& ranks) {
    HANARE_TRY_ASSIGN(const std::string path, sys::find_program(tasks.program.front()));
    const sys::ProgramFile file = sys::inspect_program(path);
    HANARE_TRY_ASSIGN(const sys::FileDescriptor nothing, sys::open_nothing());
    for (uint32_t rank = tasks.first_rank; rank < tasks.first_rank + tasks.count; ++rank) {
        // Each program of a task, one after the other, finds it there.
        HANARE_TRY_ASSIGN(const sys::FileDescriptor memory,
                          sys::sealed_memory_holding(secret.bytes()));
        sys::ChildPrograms::Launch launch = {
            .path = path,
            .arguments = tasks.program,
            .environment = environment_of(tasks, rank, memory.number())};
        launch.is_text = !file.is_script && !file.is_binary;
        launch.input = rank == 0 ? -1 : nothing.number();
        launch.inherited = memory.number();
        HANARE_TRY_ASSIGN(const pid_t pid, children.start(launch));
        ranks[pid] = rank;
    }
    return {};
}

int report_start_failure(const std::string& program, const Error& error) {
    const auto path = sys::find_program(program);
    if (!path) return report_not_found(path.error());
    const bool is_of_program =
        error.os_errno != 0 && error.status == HANARE_STATUS_INVALID_ARGUMENT;
    if (!is_of_program) return report(error);
    ChosenProgram chosen;
    chosen.file = sys::inspect_program(*path);
    return report_not_started(chosen, error);
}

std::string name_of_task(uint32_t rank, const std::string& host) {
    const std::string name = "rank " + std::to_string(rank);
    return host.empty() ? name : name + " on host " + host;
}

int exit_status_of(int wait_status) {
    constexpr int kAsShellsSay = 128;
    const sys::ProgramEnd end = sys::program_end(wait_status);
    return end.is_signal ? kAsShellsSay + end.number : end.number;
}

}  // namespace hanare::cli
