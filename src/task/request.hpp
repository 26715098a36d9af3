// SPDX-License-Identifier: Apache-2.0
//
// What a process (a proxy, a user of the C API) asks the root of a space for: a task that has what
// the process has, as a program has what its process had before exec.  Both are of the same
// version, on the same machine.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "sys/file.hpp"
#include "task/start_of_program.hpp"

namespace hanare::task {

inline constexpr size_t kLimits = RLIM_NLIMITS;

struct Request {
    StartOfProgram start;
    uint64_t signal_mask = 0;
    uint64_t ignored_signals = 0;  // bit N-1: signal N
    uint32_t umask = 0;
    int32_t group = 0;  // of processes
    std::array<rlimit, kLimits> limits = {};
    std::vector<uint8_t> processors;  // the kernel's mask; empty: as they are
    // Numbers of open descriptors in the task; the descriptors travel beside this.
    std::vector<int> numbers;

    // Of this process, and the calling thread.
    static Result<Request> of_this_process(StartOfProgram start);

    std::vector<std::byte> written() const;
    // INVALID_ARGUMENT for what written() has not made.
    static Result<Request> read(std::span<const std::byte> text);
};

// What goes to and fro on a connection.  Waits for the peer, at most `timeout_ms` for
// anything to move: TIMEOUT; NOT_FOUND when the peer has closed.  With this process's working
// directory.
Result<void> send_request(const sys::FileDescriptor& socket, const Request& request,
                          int timeout_ms);
struct Received {
    Request request;
    std::vector<sys::FileDescriptor> descriptors;  // as `request.numbers`
    sys::FileDescriptor directory;                 // the working directory
};
Result<Received> receive_request(const sys::FileDescriptor& socket, int timeout_ms);

// The root's answers: kReady for a request; kBegun with the process, then kEnded with the status of
// waitpid(2); or kFailed with the error's status and text; or kFull where the space can have no
// more mappings, with 1 for the first that is told so.
struct Answer {
    enum class Kind : uint32_t { kReady = 1, kBegun, kEnded, kFailed, kFull };
    Kind kind = Kind::kFailed;
    int32_t value = 0;
    char text[sizeof(Error::text)] = {};
};
Result<void> send_answer(const sys::FileDescriptor& socket, const Answer& answer, int timeout_ms);
Result<Answer> receive_answer(const sys::FileDescriptor& socket, int timeout_ms);

}  // namespace hanare::task
