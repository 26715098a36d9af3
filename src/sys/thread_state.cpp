// SPDX-License-Identifier: Apache-2.0
#include "sys/thread_state.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/lock.hpp"

namespace hanare::sys {

namespace {

// About twenty milliseconds in all.
constexpr uint32_t kTurnsMax = 400;
constexpr uint32_t kYields = 200;
constexpr uint32_t kPauseUs = 100;

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

// The kernel writes the number of a system call, -1 for a fault, or "running".
ThreadState state_of(const Path& path) noexcept {
    char first = '-';
    const long file = syscall(SYS_openat, AT_FDCWD, path.text, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        if (syscall(SYS_read, file, &first, 1) != 1) first = '-';
        syscall(SYS_close, file);
    }
    if (first == 'r') return ThreadState::kRunning;
    return first == '-' ? ThreadState::kInFault : ThreadState::kInSystemCall;
}

}  // namespace

std::array<char, 16> thread_name() noexcept {
    std::array<char, 16> name = {};
    syscall(SYS_prctl, PR_GET_NAME, name.data());
    return name;
}

uint32_t current_thread_id() noexcept { return static_cast<uint32_t>(syscall(SYS_gettid)); }

ThreadState thread_state(uint32_t thread_id) noexcept {
    const int saved_errno = errno;
    const Path path(thread_id);
    ThreadState state = state_of(path);
    for (uint32_t turn = 0; state == ThreadState::kRunning && turn < kTurnsMax; ++turn) {
        yield_for_us(turn < kYields ? 0 : kPauseUs);
        state = state_of(path);
    }
    errno = saved_errno;
    return state;
}

void signal_thread(uint32_t thread_id, int signal_number) noexcept {
    signal_thread_of(getpid(), thread_id, signal_number);
}

bool signal_thread_of(int process_id, uint32_t thread_id, int signal_number) noexcept {
    const int saved_errno = errno;
    const bool is_sent = syscall(SYS_tgkill, process_id, thread_id, signal_number) == 0;
    errno = saved_errno;
    return is_sent;
}

}  // namespace hanare::sys
