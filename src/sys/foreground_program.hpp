// SPDX-License-Identifier: Apache-2.0
//
// A program that runs in our place: it gets our standard streams, our other descriptors, and signal
// mask and dispositions as we got them, and what is sent to us is passed on to it.  We wait, as a
// shell does for the foreground, and end as it did.  It is killed when we are (`kill -9`).
//
// From start() on, the signals that are passed on come by fd() and SIGPIPE is ignored.  For the
// main thread of a program without other threads; one object at a time.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace hanare::sys {

// The exit status, or the signal that ended it.
struct ProgramEnd {
    bool is_signal = false;
    int number = 0;
};
ProgramEnd program_end(int wait_status);

// Those that are passed on, and SIGCHLD.
sigset_t forwarded_signals();
// What the terminal sends goes to the whole group of processes, and so to the program, too; but a
// hangup to the leader of the session only.
bool comes_to_program_too(int number, int code);

class ForegroundProgram {
public:
    struct Launch {
        std::string path;
        std::vector<std::string> arguments;    // the first is its name
        std::vector<std::string> environment;  // NAME=VALUE
        // What SIGXFSZ did when we were started; its disposition now is ours.
        bool ignores_file_size_signal = false;
        bool is_text = false;  // what the kernel does not know is for /bin/sh, as with execvp(3)
    };

    // Returns once the program has begun.  An error of exec is INVALID_ARGUMENT with its
    // `os_errno`.
    static Result<ForegroundProgram> start(const Launch& launch);

    ForegroundProgram(ForegroundProgram&& other) noexcept;
    ForegroundProgram& operator=(ForegroundProgram&&) = delete;
    ~ForegroundProgram();  // kills it if it has not ended

    pid_t pid() const { return pid_; }
    // Readable when there is something for handle_signals().
    int fd() const { return signals_.number(); }
    // Passes on what came.  The status of waitpid(2) once the program has ended.
    std::optional<int> handle_signals();

    // Ends this process as the program ended: with its exit status, or by its signal and without a
    // core of our own.
    [[noreturn]] static void end_as(int wait_status);

private:
    ForegroundProgram() = default;
    void pass_on(int number, int code, pid_t sender) const;

    pid_t pid_ = -1;
    FileDescriptor signals_;
};

}  // namespace hanare::sys
