// SPDX-License-Identifier: Apache-2.0
#include "sys/thread_state.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hanare::sys {

namespace {

// "/proc/self/task/ID/syscall"
struct Path {
    explicit Path(uint32_t thread_id) noexcept {
        char digits[10];
        size_t count = 0;
        do {
            digits[count++] = static_cast<char>('0' + thread_id % 10);
            thread_id /= 10;
        } while (thread_id != 0);
        constexpr char kBefore[] = "/proc/self/task/";
        constexpr char kAfter[] = "/syscall";
        std::memcpy(text, kBefore, sizeof kBefore - 1);
        char* end = text + sizeof kBefore - 1;
        while (count > 0) *end++ = digits[--count];
        std::memcpy(end, kAfter, sizeof kAfter);
    }
    char text[48];
};

}  // namespace

uint32_t current_thread_id() noexcept { return static_cast<uint32_t>(syscall(SYS_gettid)); }

bool is_in_system_call(uint32_t thread_id) noexcept {
    const int saved_errno = errno;
    const Path path(thread_id);
    const long file = syscall(SYS_openat, AT_FDCWD, path.text, O_RDONLY | O_CLOEXEC);
    char first = '-';
    if (file >= 0) {
        // The number of the call; "-1" for a fault, "running" for a thread that is not asleep.
        if (syscall(SYS_read, file, &first, 1) != 1) first = '-';
        syscall(SYS_close, file);
    }
    errno = saved_errno;
    return first >= '0' && first <= '9';
}

void signal_thread(uint32_t thread_id, int signal_number) noexcept {
    const int saved_errno = errno;
    syscall(SYS_tgkill, getpid(), thread_id, signal_number);
    errno = saved_errno;
}

}  // namespace hanare::sys
