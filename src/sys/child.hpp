// SPDX-License-Identifier: Apache-2.0
//
// A child process that runs this same program with other arguments and whose standard output is a
// pipe to us.  It dies with its parent (the thread that started it), however that ends.
// Objects are used by the thread that made them.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.hpp"

namespace hanare::sys {

class Child {
public:
    // argv[0] is the program's name as ps shows it.
    static Result<Child> start(const std::vector<std::string>& argv);

    Child(Child&& other) noexcept;
    Child& operator=(Child&& other) noexcept;
    ~Child();  // kills and waits

    pid_t pid() const { return pid_; }
    int output_fd() const { return output_fd_; }
    // SIGKILL; wait() afterwards.
    void kill() noexcept;
    // Waits for the end; returns the status of waitpid(2).  Once.
    Result<int> wait();

private:
    Child() = default;

    pid_t pid_ = -1;
    int output_fd_ = -1;
};

// "exit status 3", "killed by signal 9 (Killed)".
std::string describe_wait_status(int wait_status);

}  // namespace hanare::sys
