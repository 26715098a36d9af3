// SPDX-License-Identifier: Apache-2.0
//
// A program that helps this one beside whatever else it does: its standard input has what it is
// given and ends when it is no longer wanted, we read lines from its standard output, and its
// standard error is ours.  It is killed when this process ends, however that happens; what it has
// started itself sees its standard input end then.  What the terminal sends does not reach it.
//
// Signals of this process are as before when start() returns.  By one thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace hanare::sys {

class HelperProgram {
public:
    struct Launch {
        std::string path;
        std::vector<std::string> arguments;    // the first is its name
        std::vector<std::string> environment;  // NAME=VALUE, all of it
        // What SIGXFSZ did when we were started; its disposition now is ours.
        bool ignores_file_size_signal = false;
        bool is_text = false;  // what the kernel does not know is for /bin/sh, as with execvp(3)
        // In its standard input from the beginning; at most kPipeBytesMin (sys/pipe.hpp).
        std::span<const std::byte> input = {};
    };
    // Returns once the program has begun.  An error of exec is INVALID_ARGUMENT with its
    // `os_errno`.
    static Result<HelperProgram> start(const Launch& launch);

    HelperProgram(HelperProgram&& other) noexcept;
    HelperProgram& operator=(HelperProgram&&) = delete;
    ~HelperProgram();  // kills it if it has not ended

    // Without the end of the line.  NOT_FOUND: there will be no more; TIMEOUT.
    Result<std::string> read_line(int timeout_ms);
    // Closes its standard input.
    void dismiss() noexcept { input_.close(); }
    // Dismisses it, and kills it where it has not ended after so long.  The status of waitpid(2);
    // once.
    int end(int patience_ms) noexcept;

private:
    HelperProgram() = default;

    pid_t pid_ = -1;
    FileDescriptor input_;
    FileDescriptor output_;
    std::string read_;  // of the next line
};

}  // namespace hanare::sys
