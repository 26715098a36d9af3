// SPDX-License-Identifier: Apache-2.0
#include "sys/life_lock.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/units.hpp"
#include "sys/file.hpp"
#include "sys/inject.hpp"

namespace hanare::sys {

namespace {

constexpr off_t kFirstByte = off_t{1} << 62;

// "/proc/self/fd/NUMBER"
struct Path {
    explicit Path(int number) noexcept {
        char digits[10];
        size_t count = 0;
        do {
            digits[count++] = static_cast<char>('0' + number % 10);
            number /= 10;
        } while (number != 0);
        constexpr char kBefore[] = "/proc/self/fd/";
        std::memcpy(text, kBefore, sizeof kBefore - 1);
        char* end = text + sizeof kBefore - 1;
        while (count > 0) *end++ = digits[--count];
        *end = '\0';
    }
    char text[32];
};

struct flock byte_of(uint32_t number) noexcept {
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = kFirstByte + static_cast<off_t>(number);
    lock.l_len = 1;
    return lock;
}

// syscall(2) and not libc's functions: those are cancellation points or may be interposed.
int open_again(int file) noexcept {
    if (const int injected = inject::next_errno(inject::Call::kOpen); injected > 0) {
        errno = injected;
        return -1;
    }
    if (file < 0) {
        errno = EBADF;
        return -1;
    }
    const Path path(file);
    return above_standard(
        static_cast<int>(syscall(SYS_openat, AT_FDCWD, path.text, O_RDWR | O_CLOEXEC)));
}

}  // namespace

int LifeLock::take(int file, uint32_t number, LifeLock& lock) noexcept {
    const int saved_errno = errno;
    const int own = open_again(file);
    int error = own < 0 ? errno : 0;
    if (error == 0) {
        struct flock wanted = byte_of(number);
        void* mapped = MAP_FAILED;
        if (syscall(SYS_fcntl, own, F_OFD_SETLK, &wanted) == 0) {
            mapped = mmap(nullptr, kOsPageBytes, PROT_NONE, MAP_PRIVATE, own, 0);
        }
        if (mapped == MAP_FAILED) {
            error = errno;
        } else {
            LifeLock taken;
            taken.mapping_ = mapped;
            lock = std::move(taken);
        }
        close_own(own);
    }
    errno = saved_errno;
    return error;
}

int LifeLock::look(int file, uint32_t number, bool& is_taken) noexcept {
    const int saved_errno = errno;
    struct flock wanted = byte_of(number);
    const int error = syscall(SYS_fcntl, file, F_OFD_GETLK, &wanted) == 0 ? 0 : errno;
    if (error == 0) is_taken = wanted.l_type != F_UNLCK;
    errno = saved_errno;
    return error;
}

void LifeLock::keep_from_children() const noexcept {
    const int saved_errno = errno;
    if (mapping_ != nullptr) madvise(mapping_, kOsPageBytes, MADV_DONTFORK);
    errno = saved_errno;
}

void LifeLock::release() noexcept {
    const int saved_errno = errno;
    if (mapping_ != nullptr) munmap(std::exchange(mapping_, nullptr), kOsPageBytes);
    errno = saved_errno;
}

bool process_exists(pid_t pid) noexcept {
    const int saved_errno = errno;
    const bool exists = syscall(SYS_kill, pid, 0) == 0 || errno != ESRCH;
    errno = saved_errno;
    return exists;
}

}  // namespace hanare::sys
