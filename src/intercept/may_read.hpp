// SPDX-License-Identifier: Apache-2.0
//
// Whether there is something at an address that a system call names: the kernel answers EFAULT
// where there is not, and programs ask it on purpose (abseil, gperftools: whether an address can be
// read, by rt_sigprocmask).  Who looks at an argument before the kernel does asks first.
//
// Async-signal-safe; for files that are compiled for general registers only.
#pragma once

#include <sys/syscall.h>

#include <cerrno>
#include <cstdint>

#include "hook/rewrite/system_call.hpp"
#include "intercept/far_memory.hpp"

namespace hanare::intercept {

// Of eight bytes.  The kernel reads them before it finds out that there is no such change of mask.
inline bool kernel_may_read(uint64_t address) noexcept {
    constexpr uint64_t kNoSuchChange = ~uint64_t{0};
    const uint64_t question[6] = {kNoSuchChange, address, 0, sizeof(uint64_t), 0, 0};
    return hook::raw_system_call(SYS_rt_sigprocmask, question) != -EFAULT;
}

// Of eight bytes and more, less than a page.
inline bool may_read(const FarMemory& memory, const hook::SystemCall& call, uint64_t address,
                     uint64_t bytes) {
    constexpr uint64_t kPageBytes = 4096;
    const uint64_t last = address + bytes - 1;
    if (address == 0 || last < address) return false;
    const uint64_t stack_page = reinterpret_cast<uint64_t>(call.stack) / kPageBytes;
    if (address / kPageBytes == stack_page && last / kPageBytes == stack_page) return true;
    // What is absent the kernel would not read.
    if (memory.overlaps(address, last + 1)) return memory.may_access(address, bytes);
    return kernel_may_read(address) && kernel_may_read(last + 1 - sizeof(uint64_t));
}

}  // namespace hanare::intercept
