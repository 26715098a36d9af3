// SPDX-License-Identifier: Apache-2.0
#include "sys/thread_count.hpp"

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

namespace hanare::sys {

namespace {

// In the low half how many there are, never more than exist, so that a doubtful moment looks like
// more threads of the program; in the high half how often that has changed.
std::atomic<uint64_t> own_threads{0};
constexpr uint64_t kChange = uint64_t{1} << 32;

// Of a directory: itself, and its name in the one above.
constexpr uint64_t kLinksOfNoThread = 2;

}  // namespace

constinit thread_local bool OwnThread::current_ = false;

OwnThread::OwnThread() noexcept {
    current_ = true;
    own_threads.fetch_add(kChange + 1, std::memory_order_seq_cst);
}
OwnThread::~OwnThread() {
    current_ = false;
    own_threads.fetch_add(kChange - 1, std::memory_order_seq_cst);
}
void OwnThread::forget_all() noexcept { own_threads.store(0, std::memory_order_seq_cst); }

ThreadCount::ThreadCount() noexcept
    : directory_(above_standard(open("/proc/self/task", O_PATH | O_DIRECTORY | O_CLOEXEC))) {
    struct stat status{};
    if (!directory_.is_open() || fstat(directory_.number(), &status) != 0) return;
    device_ = status.st_dev;
    inode_ = status.st_ino;
}

bool ThreadCount::has_threads(uint64_t count) const noexcept {
    if (!directory_.is_open()) return false;
    const int saved_errno = errno;
    struct stat status{};
    const bool known = fstat(directory_.number(), &status) == 0;
    errno = saved_errno;
    // The program may have closed the descriptor and opened something else.
    return known && status.st_dev == device_ && status.st_ino == inode_ &&
           status.st_nlink == kLinksOfNoThread + count;
}

bool ThreadCount::is_single() const noexcept {
    const uint64_t own = own_threads.load(std::memory_order_seq_cst);
    return has_threads(1 + (own & (kChange - 1))) &&
           own_threads.load(std::memory_order_seq_cst) == own;
}

bool ThreadCount::is_alone() const noexcept { return has_threads(1); }

}  // namespace hanare::sys
