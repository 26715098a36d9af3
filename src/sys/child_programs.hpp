// SPDX-License-Identifier: Apache-2.0
//
// Programs that run side by side, started by one that waits for all of them.  They have its
// standard output and error, its process group, and signal mask and dispositions as it got them.
// Each is killed when this process ends, however that happens; not so what it has started itself.
//
// From begin() on SIGINT, SIGTERM and SIGHUP come by fd(), but for those that were ignored and stay
// so, SIGPIPE is ignored, and this process may have as many files as the hard limit allows.  For
// the main thread of a program; one object at a time.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/file.hpp"
#include "sys/program_start.hpp"

namespace hanare::sys {

class ChildPrograms {
public:
    // `ignores_file_size_signal`: what SIGXFSZ did when we were started; it is ours now.
    static Result<ChildPrograms> begin(bool ignores_file_size_signal);
    ChildPrograms(ChildPrograms&& other) noexcept;
    ChildPrograms& operator=(ChildPrograms&&) = delete;
    // Kills those that have not ended, and waits for them.
    ~ChildPrograms();

    struct Launch {
        std::string path;
        std::vector<std::string> arguments;    // the first is its name
        std::vector<std::string> environment;  // NAME=VALUE, all of it
        bool is_text = false;  // what the kernel does not know is for /bin/sh, as with execvp(3)
        int input = -1;        // its standard input; -1: ours
        int inherited = -1;    // it also has this one, under the same number
        // What the terminal sends does not reach it.
        bool ignores_terminal = false;
    };
    // Returns once the program has begun.  An error of exec is INVALID_ARGUMENT with its
    // `os_errno`.
    Result<pid_t> start(const Launch& launch);

    // Readable when there is something to take.
    int fd() const { return signals_.number(); }
    struct Signal {
        int number = 0;
        bool from_terminal = false;  // which has sent it to the programs, too
    };
    std::optional<Signal> take_signal();
    struct End {
        pid_t pid = -1;
        int status = 0;  // of waitpid(2)
    };
    std::optional<End> take_end();

    size_t running() const { return running_.size(); }
    // To one that has not been taken by take_end().
    void send(pid_t pid, int number) const noexcept;

private:
    ChildPrograms() = default;

    // What the programs are to have.
    InheritedSignals inherited_;
    struct rlimit files_ = {};
    FileDescriptor signals_;
    std::vector<pid_t> running_;
};

}  // namespace hanare::sys
