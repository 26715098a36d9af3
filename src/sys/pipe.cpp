// SPDX-License-Identifier: Apache-2.0
#include "sys/pipe.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "sys/clock.hpp"
#include "sys/event.hpp"

namespace hanare::sys {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;

}  // namespace

Result<Pipe> make_pipe() {
    int ends[2];
    // As they are closed (FileDescriptor): ThreadSanitizer must see both or neither.
    if (syscall(SYS_pipe2, ends, O_CLOEXEC) != 0)
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "pipe");
    Pipe pipe;
    pipe.from = FileDescriptor(above_standard(ends[0]));
    pipe.to = FileDescriptor(above_standard(ends[1]));
    if (pipe.from.is_open() && pipe.to.is_open()) return pipe;
    return fail_errno(HANARE_STATUS_SYSTEM, errno, "pipe");
}

Result<void> put_into(const FileDescriptor& pipe, std::span<const std::byte> bytes) {
    const ssize_t written = write(pipe.number(), bytes.data(), bytes.size());
    if (written == static_cast<ssize_t>(bytes.size())) return {};
    return fail_errno(HANARE_STATUS_SYSTEM, written < 0 ? errno : EAGAIN, "filling a pipe");
}

Result<FileDescriptor> pipe_holding(std::span<const std::byte> bytes) {
    HANARE_TRY_ASSIGN(Pipe pipe, make_pipe());
    HANARE_TRY(put_into(pipe.to, bytes));
    return std::move(pipe.from);
}

Result<FileDescriptor> open_nothing() {
    FileDescriptor file(above_standard(open("/dev/null", O_RDONLY | O_CLOEXEC)));
    if (file.is_open()) return file;
    return fail_errno(HANARE_STATUS_SYSTEM, errno, "opening /dev/null");
}

Result<void> read_exactly(int descriptor, std::span<std::byte> bytes, int timeout_ms) {
    const uint64_t end_ns = now_ns() + static_cast<uint64_t>(timeout_ms) * kNsPerMs;
    while (!bytes.empty()) {
        const uint64_t now = now_ns();
        const int left_ms = now < end_ns ? static_cast<int>((end_ns - now) / kNsPerMs) + 1 : 0;
        if (!wait_until_readable(descriptor, -1, left_ms).first) {
            if (now < end_ns) continue;
            return fail(HANARE_STATUS_TIMEOUT, "nothing came within %d ms", timeout_ms);
        }
        const ssize_t got = read(descriptor, bytes.data(), bytes.size());
        if (got < 0 && is_transient(errno)) continue;
        if (got < 0) return fail_errno(HANARE_STATUS_SYSTEM, errno, "reading");
        if (got == 0) return fail(HANARE_STATUS_NOT_FOUND, "too little came");
        bytes = bytes.subspan(static_cast<size_t>(got));
    }
    return {};
}

}  // namespace hanare::sys
