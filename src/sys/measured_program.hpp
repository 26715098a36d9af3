// SPDX-License-Identifier: Apache-2.0
//
// A program that is measured: it reads one file and writes another, its standard error is a pipe to
// us, and it may run in a cgroup and as another user.  It dies with its parent (the thread that
// started it), however that ends.  For the main thread of a program without other threads.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace hanare::sys {

struct UserIds {
    uid_t user = 0;
    gid_t group = 0;
};

// The user that owns nothing; none where we may not become it, or are it.
std::optional<UserIds> unprivileged_user();

class MeasuredProgram {
public:
    struct Launch {
        std::string path;                      // /proc/self/exe is this program itself
        std::vector<std::string> arguments;    // the first is its name
        std::vector<std::string> environment;  // NAME=VALUE, in front of ours
        int input = -1;                        // its standard input and output
        int output = -1;
        std::string cgroup;           // a cgroup's directory, or empty
        pid_t network_of = 0;         // in the network of that process; 0: in ours
        std::optional<UserIds> user;  // whom it becomes, after entering the cgroup
    };

    // Failures to begin are told by error_fd() and exit status 127.
    static Result<MeasuredProgram> start(const Launch& launch);

    MeasuredProgram(MeasuredProgram&& other) noexcept;
    MeasuredProgram& operator=(MeasuredProgram&&) = delete;
    ~MeasuredProgram();  // kills and waits

    pid_t pid() const { return pid_; }
    // Ends when the last process that has it has ended.
    int error_fd() const { return errors_.number(); }
    // SIGKILL; wait() afterwards.
    void kill() noexcept;
    // Until whoever has its standard error has ended, and given back its memory, or the time is up.
    void wait_for_last(std::chrono::milliseconds time) noexcept;

    struct End {
        int status = 0;                    // of waitpid(2)
        uint64_t peak_resident_bytes = 0;  // of the largest process among it and its children
    };
    // Waits for the end.  Once.
    Result<End> wait();

private:
    MeasuredProgram() = default;

    pid_t pid_ = -1;
    FileDescriptor errors_;
};

}  // namespace hanare::sys
