// SPDX-License-Identifier: Apache-2.0
//
// Whether the program has more than one thread, cheaply enough to ask in every fault: the number of
// links of /proc/self/task counts the threads of the process, those that the kernel has made for it
// included.
#pragma once

#include <cstdint>

#include "sys/file.hpp"

namespace hanare::sys {

// A thread of Hanare's own, which never writes to far memory, has one of these for its life.
class OwnThread {
public:
    OwnThread() noexcept;
    ~OwnThread();
    OwnThread(const OwnThread&) = delete;
    OwnThread& operator=(const OwnThread&) = delete;

    // Whether the calling thread has one.  Async-signal-safe, no vector registers.
    static bool is_current() noexcept { return current_; }

    // In the child of a fork: these threads do not exist there.
    static void forget_all() noexcept;

private:
    [[gnu::tls_model("initial-exec")]] static constinit thread_local bool current_;
};

class ThreadCount {
public:
    // Where /proc cannot be looked at, is_single() is always false.
    ThreadCount() noexcept;

    // The calling thread is the only one that is not Hanare's own.  It alone can change that.
    // Async-signal-safe.
    bool is_single() const noexcept;

    // The calling thread is the only one of the process, Hanare's own included.
    bool is_alone() const noexcept;

    void abandon_in_child() noexcept { directory_.close(); }

private:
    bool has_threads(uint64_t count) const noexcept;

    FileDescriptor directory_;
    uint64_t device_ = 0;
    uint64_t inode_ = 0;
};

}  // namespace hanare::sys
