// SPDX-License-Identifier: Apache-2.0
#include "space/forks.hpp"

#include <linux/sched.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cerrno>

#include "base/units.hpp"
#include "sys/raw_thread.hpp"

namespace hanare::space {

namespace {

// Which tasks' memory children get is said of the one memory of all.
constinit TurnLock one_at_a_time;

// Mappings of devices refuse that children get them again: all others around them do not.
void advise(Range range, int advice) noexcept {
    const uint64_t bytes = range.end - range.begin;
    if (bytes == 0) return;
    const int64_t result =
        sys::raw_call3(SYS_madvise, range.begin, bytes, static_cast<uint64_t>(advice));
    if (result != -EINVAL || bytes <= kOsPageBytes) return;
    const uint64_t middle = range.begin + round_up(bytes / 2, kOsPageBytes);
    advise({range.begin, middle}, advice);
    advise({middle, range.end}, advice);
}

}  // namespace

bool is_fork(const hook::SystemCall& call) noexcept {
    if (call.number == SYS_fork) return true;
    uint64_t flags = call.arguments[0];
    uint64_t stack = call.arguments[1];
    if (call.number == SYS_clone3) {
        const auto& asked = *reinterpret_cast<const clone_args*>(call.arguments[0]);
        flags = asked.flags;
        stack = asked.stack;
    }
    // On a stack of its own the child could not come back through here.
    return (flags & CLONE_VM) == 0 && stack == 0;
}

// The child finds the partition as if nobody were changing it.
int64_t fork_task(Task& task, const hook::SystemCall& call) noexcept {
    if (!TaskTable::is_here()) {
        const TurnGuard guard(task.partition.turn());
        return hook::raw_system_call(call.number, call.arguments);
    }
    const TurnGuard first(one_at_a_time);
    const TurnGuard guard(task.partition.turn());
    const Range own = task.partition.whole();
    const Range all = TaskTable::whole();
    advise({all.begin, own.begin}, MADV_DONTFORK);
    advise({own.end, all.end}, MADV_DONTFORK);
    advise(own, MADV_DOFORK);
    return hook::raw_system_call(call.number, call.arguments);
}

}  // namespace hanare::space
