// SPDX-License-Identifier: Apache-2.0
//
// A child process that runs this same program with other arguments, or one that belongs to it; its
// standard output is a pipe to us, and its standard input can be one from us.  It dies with its
// parent (the thread that started it), however that ends.  Objects are used by the thread that made
// them.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace hanare::sys {

class Child {
public:
    enum class Input { kInherited, kFromUs };
    enum class Output { kAlone, kWithErrors };  // standard error goes to the pipe as well
    // argv[0] is the program's name as ps shows it.
    static Result<Child> start(const std::vector<std::string>& argv,
                               Input input = Input::kInherited, Output output = Output::kAlone,
                               const char* program = "/proc/self/exe");

    Child(Child&& other) noexcept;
    Child& operator=(Child&& other) noexcept;
    ~Child();  // kills and waits

    pid_t pid() const { return pid_; }
    int output_fd() const { return output_fd_; }
    // With Input::kFromUs: to its standard input.  No SIGPIPE when nobody reads any more.
    Result<void> send(std::string_view text);
    // Its standard input ends.
    void end_input() noexcept;
    // It is waited for all the same.
    bool has_ended() const noexcept;
    // SIGKILL; wait() afterwards.
    void kill() noexcept;
    // Waits for the end; returns the status of waitpid(2).  Once.
    Result<int> wait();

private:
    Child() = default;

    pid_t pid_ = -1;
    int output_fd_ = -1;
    int input_fd_ = -1;
};

// "exit status 3", "killed by signal 9 (Killed)".
std::string describe_wait_status(int wait_status);

}  // namespace hanare::sys
