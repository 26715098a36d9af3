// SPDX-License-Identifier: Apache-2.0
#include "sys/user_dispatch.hpp"

#include <linux/audit.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstdint>

#include "sys/raw_thread.hpp"

namespace hanare::sys {

namespace {

// Made here: libc's prctl lies where calls are stopped.
int set_user_dispatch(uint64_t mode, uint64_t code, uint64_t bytes) noexcept {
    const int64_t result =
        raw_call6(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, mode, code, bytes, 0, 0);
    return static_cast<int>(-result);
}

}  // namespace

int begin_user_dispatch(const void* code, size_t bytes) noexcept {
    return set_user_dispatch(PR_SYS_DISPATCH_ON, reinterpret_cast<uint64_t>(code), bytes);
}

int end_user_dispatch() noexcept { return set_user_dispatch(PR_SYS_DISPATCH_OFF, 0, 0); }

bool is_of_native_table(const siginfo_t& info) noexcept {
    return info.si_arch == AUDIT_ARCH_X86_64;
}

}  // namespace hanare::sys
