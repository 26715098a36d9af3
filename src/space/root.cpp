// SPDX-License-Identifier: Apache-2.0
#include "space/root.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "space/signals.hpp"
#include "space/space.hpp"
#include "sys/foreground_program.hpp"
#include "task/signal_action.hpp"

namespace hanare::space {

namespace {

void set(std::vector<std::string>& environment, const std::string& name, uint32_t value) {
    std::erase_if(environment,
                  [&](const std::string& each) { return each.starts_with(name + "="); });
    environment.push_back(name + "=" + std::to_string(value));
}

class Root {
public:
    Root(Space space, const sigset_t& awaited, const sigset_t& of_tasks)
        : space_(std::move(space)), awaited_(awaited), mask_of_tasks_(task::bits_of(of_tasks)) {}

    Result<void> begin(const StartOfProgram& start, uint32_t count) {
        for (uint32_t index = 0; index < count; ++index) {
            StartOfProgram own = start;
            set(own.environment, "HANARE_SPACE_TASK", index);
            set(own.environment, "HANARE_SPACE_TASKS", count);
            const Result<uint32_t> task = space_.spawn(own, mask_of_tasks_);
            if (!task) {
                send(SIGKILL);
                while (running_ > 0) wait();
                return std::unexpected(task.error());
            }
            processes_.push_back(space_.process_of(*task));
            ++running_;
        }
        return {};
    }

    int stay() {
        while (running_ > 0) wait();
        return failure_;
    }

private:
    void wait() {
        siginfo_t info = {};
        const int number = sigwaitinfo(&awaited_, &info);
        if (number == SIGCHLD) {
            reap();
        } else if (number > 0 && !goes_to_all_by_itself(number, info.si_code)) {
            send(number);
        }
    }

    void reap() {
        int status = 0;
        for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
            if (!space_.reap(ended)) continue;
            std::erase(processes_, ended);
            --running_;
            if (failure_ == 0) failure_ = status;
        }
    }

    void send(int number) const {
        for (const pid_t process : processes_) kill(process, number);
    }

    Space space_;
    const sigset_t awaited_;
    const uint64_t mask_of_tasks_;
    std::vector<pid_t> processes_;
    uint32_t running_ = 0;
    int failure_ = 0;
};

}  // namespace

Result<int> run_tasks(const StartOfProgram& start, uint32_t count) {
    const sigset_t awaited = sys::forwarded_signals();
    sigset_t before;
    if (sigprocmask(SIG_BLOCK, &awaited, &before) != 0) {
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "blocking signals");
    }
    // Ignored, it would take the ends of the tasks with it.
    std::signal(SIGCHLD, SIG_DFL);
    HANARE_TRY_ASSIGN(Space space, Space::create());
    Root root(std::move(space), awaited, before);
    HANARE_TRY(root.begin(start, count));
    return root.stay();
}

}  // namespace hanare::space
