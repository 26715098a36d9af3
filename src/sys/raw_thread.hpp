// SPDX-License-Identifier: Apache-2.0
//
// What thread this is, and whether another one lives, without libc: for code that runs in the place
// of a system call.  Async-signal-safe; no vector registers.
#pragma once

#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

namespace hanare::sys {

inline int64_t raw_call3(long number, uint64_t a, uint64_t b, uint64_t c) noexcept {
    int64_t result;
    asm volatile("syscall"
                 : "=a"(result)
                 : "a"(number), "D"(a), "S"(b), "d"(c)
                 : "rcx", "r11", "memory");
    return result;
}

inline int64_t raw_call6(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                         uint64_t f) noexcept {
    register uint64_t fourth asm("r10") = d;
    register uint64_t fifth asm("r8") = e;
    register uint64_t sixth asm("r9") = f;
    int64_t result;
    asm volatile("syscall"
                 : "=a"(result)
                 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                 : "rcx", "r11", "memory");
    return result;
}

inline uint32_t raw_process_id() noexcept {
    return static_cast<uint32_t>(raw_call3(SYS_getpid, 0, 0, 0));
}
inline uint32_t raw_thread_id() noexcept {
    return static_cast<uint32_t>(raw_call3(SYS_gettid, 0, 0, 0));
}
// The process whose memory this is.  A child of vfork shares it until it execs, and is another one:
// to that, all threads of its parent are gone.
inline constinit std::atomic<uint32_t> memory_owner{0};
inline void note_memory_owner() noexcept { memory_owner.store(raw_process_id()); }
inline bool borrows_memory() noexcept {
    const uint32_t owner = memory_owner.load(std::memory_order_relaxed);
    return owner != 0 && owner != raw_process_id();
}

// Of this process.
inline bool raw_thread_lives(uint32_t thread_id) noexcept {
    return raw_call3(SYS_tgkill, raw_process_id(), thread_id, 0) != -ESRCH;
}

}  // namespace hanare::sys
