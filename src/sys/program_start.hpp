// SPDX-License-Identifier: Apache-2.0
//
// How a program is started as a child, whoever waits for it then: it is killed when we end, however
// that happens, and has signal mask and dispositions as we got them, though we have changed them.
//
// For the main thread of a program.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace hanare::sys {

// What programs are to have of our signals.
class InheritedSignals {
public:
    // From here on `ours` are blocked (they wait for a descriptor), SIGCHLD leaves a status, and
    // SIGPIPE is ignored.  `ignores_file_size_signal`: what SIGXFSZ did when we were started; it is
    // ours now.
    static InheritedSignals take(const sigset_t& ours, bool ignores_file_size_signal) noexcept;
    // In this process again; SIGXFSZ stays ours.
    void give_back() const noexcept;
    // To a child, or where there will be none.
    void give_all() const noexcept;

private:
    sigset_t mask_ = {};
    struct sigaction child_ended_ = {};
    struct sigaction broken_pipe_ = {};
    bool ignores_file_size_signal_ = false;
};

struct ProgramStart {
    const std::string& path;
    const std::vector<std::string>& arguments;    // the first is its name
    const std::vector<std::string>& environment;  // NAME=VALUE, all of it
    bool is_text = false;  // what the kernel does not know is for /bin/sh, as with execvp(3)
    const InheritedSignals& signals;
    // Called in the child, which has our memory until exec and must leave nothing there.  What is
    // not 0 is an errno value, and there is no program.
    int (*prepare)(const void* context) = nullptr;
    const void* context = nullptr;
};
// Returns once the program has begun: no page is copied meanwhile.  An error of exec is
// INVALID_ARGUMENT with its `os_errno`; NO_MEMORY.
Result<pid_t> start_program(const ProgramStart& start);

// Until that child has ended; its status is lost.
void wait_for_end(pid_t child) noexcept;

}  // namespace hanare::sys
