// SPDX-License-Identifier: Apache-2.0
//
// Compiled for general registers only.
#include "intercept/region_calls.hpp"

#include <sys/syscall.h>

#include "intercept/far_arguments.hpp"
#include "intercept/region_memory.hpp"
#include "intercept/signal_actions.hpp"
#include "sys/thread_count.hpp"

namespace hanare::intercept {

bool RegionMemory::may_access(uintptr_t address, size_t bytes) const {
    size_t covered = 0;
    for_each_part(address, address + bytes,
                  [&](size_t, uintptr_t from, uintptr_t to) { covered += to - from; });
    return covered == 0 || covered == bytes;
}

hook::Verdict handle_region_call(hook::SystemCall& call) {
    if (sys::OwnThread::is_current()) return hook::Verdict::kNative;
    switch (call.number) {
        // Two threads or processes come out of these, and only one of them would come out here.
        case SYS_fork:
        case SYS_vfork:
        case SYS_clone:
        case SYS_clone3: return hook::Verdict::kNative;
        case SYS_rt_sigaction: return handle_signal_action(region_memory(), call);
        case SYS_setsockopt: return handle_socket_option(call);
        default: return handle_arguments(call);
    }
}

}  // namespace hanare::intercept
