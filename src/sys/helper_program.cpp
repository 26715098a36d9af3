// SPDX-License-Identifier: Apache-2.0
#include "sys/helper_program.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "sys/clock.hpp"
#include "sys/event.hpp"
#include "sys/pipe.hpp"
#include "sys/process_end.hpp"
#include "sys/program_start.hpp"

namespace hanare::sys {
namespace {

// That reach a whole process group: the helper ends with its standard input.
constexpr int kOfGroups[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
constexpr uint64_t kNsPerMs = 1'000'000;
constexpr size_t kLineBytesMax = 65536;

struct Ends {
    int input;
    int output;
};

int prepare(const void* context) {
    const auto& ends = *static_cast<const Ends*>(context);
    if (dup2(ends.input, STDIN_FILENO) < 0 || dup2(ends.output, STDOUT_FILENO) < 0) return errno;
    for (const int number : kOfGroups) std::signal(number, SIG_IGN);
    return 0;
}

}  // namespace

Result<HelperProgram> HelperProgram::start(const Launch& launch) {
    HANARE_TRY_ASSIGN(Pipe input, make_pipe());
    HANARE_TRY_ASSIGN(Pipe output, make_pipe());
    HANARE_TRY(put_into(input.to, launch.input));
    const Ends ends = {input.from.number(), output.to.number()};
    sigset_t none;
    sigemptyset(&none);
    const auto inherited = InheritedSignals::take(none, launch.ignores_file_size_signal);
    const auto child = start_program({.path = launch.path,
                                      .arguments = launch.arguments,
                                      .environment = launch.environment,
                                      .is_text = launch.is_text,
                                      .signals = inherited,
                                      .prepare = prepare,
                                      .context = &ends});
    inherited.give_back();
    if (!child) return std::unexpected(child.error());
    HelperProgram program;
    program.pid_ = *child;
    program.input_ = std::move(input.to);
    program.output_ = std::move(output.from);
    return program;
}

HelperProgram::HelperProgram(HelperProgram&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      input_(std::move(other.input_)),
      output_(std::move(other.output_)),
      read_(std::move(other.read_)) {}

HelperProgram::~HelperProgram() {
    if (pid_ > 0) end(0);
}

Result<std::string> HelperProgram::read_line(int timeout_ms) {
    const uint64_t end_ns = now_ns() + static_cast<uint64_t>(timeout_ms) * kNsPerMs;
    for (;;) {
        if (const size_t end = read_.find('\n'); end != read_.npos) {
            std::string line = read_.substr(0, end);
            read_.erase(0, end + 1);
            return line;
        }
        const uint64_t now = now_ns();
        const int left_ms = now < end_ns ? static_cast<int>((end_ns - now) / kNsPerMs) + 1 : 0;
        if (!wait_until_readable(output_.number(), -1, left_ms).first) {
            if (now < end_ns) continue;
            return fail(HANARE_STATUS_TIMEOUT, "no line came within %d ms", timeout_ms);
        }
        char part[512];
        const ssize_t got = read(output_.number(), part, sizeof part);
        if (got < 0 && is_transient(errno)) continue;
        if (got < 0) return fail_errno(HANARE_STATUS_SYSTEM, errno, "reading");
        if (got == 0) return fail(HANARE_STATUS_NOT_FOUND, "no more lines will come");
        read_.append(part, static_cast<size_t>(got));
        if (read_.size() > kLineBytesMax) {
            return fail(HANARE_STATUS_NOT_FOUND, "a line has more than %zu bytes", kLineBytesMax);
        }
    }
}

int HelperProgram::end(int patience_ms) noexcept {
    dismiss();
    FileDescriptor process;
    const uint64_t end_ns = now_ns() + static_cast<uint64_t>(patience_ms) * kNsPerMs;
    if (patience_ms > 0 && open_process(pid_, process) == 0) {
        uint64_t now = now_ns();
        while (!has_ended(process) && now < end_ns) {
            const int left_ms = static_cast<int>((end_ns - now) / kNsPerMs) + 1;
            wait_until_readable(process.number(), -1, left_ms);
            now = now_ns();
        }
    }
    int status = 0;
    // Where we were started with SIGCHLD ignored, it leaves no status.
    if (waitpid(pid_, &status, WNOHANG) == 0) {
        kill(pid_, SIGKILL);
        while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
    }
    pid_ = -1;
    return status;
}

}  // namespace hanare::sys
