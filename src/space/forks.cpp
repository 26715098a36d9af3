// SPDX-License-Identifier: Apache-2.0
#include "space/forks.hpp"

#include <linux/sched.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <atomic>
#include <cerrno>

#include "base/units.hpp"
#include "sys/raw_thread.hpp"

namespace hanare::space {

namespace {

// Which tasks' memory children get is said of the one memory of all.
constinit TurnLock one_at_a_time;
// For a task that is stopped while it forks.
constexpr uint32_t kPatienceMs = 5000;
constinit std::atomic<uint32_t> tasks_left_alone{0};  // that ever were

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

// Those of others, but of tasks that are left alone.
void keep_from_children_of(const Task& task) noexcept {
    const Range own = task.partition.whole();
    const Range all = TaskTable::whole();
    if (tasks_left_alone.load() == 0) {
        advise({all.begin, own.begin}, MADV_DONTFORK);
        advise({own.end, all.end}, MADV_DONTFORK);
        return;
    }
    for (const Task& other : TaskTable::tasks()) {
        const bool is_kept = &other != &task && other.process != 0 && !other.is_left_alone;
        if (is_kept) advise(other.partition.whole(), MADV_DONTFORK);
    }
}

struct Asked {
    bool is_understood = true;
    uint64_t flags = 0;
    uint64_t stack = 0;
};
Asked asked_of(const hook::SystemCall& call) noexcept {
    if (call.number == SYS_fork) return {};
    if (call.number == SYS_clone) return {.flags = call.arguments[0], .stack = call.arguments[1]};
    if (call.arguments[0] == 0 || call.arguments[1] < CLONE_ARGS_SIZE_VER0) {
        return {.is_understood = false};
    }
    // A bad address is the kernel's to judge; where it may not copy, it is not asked.
    clone_args asked = {};
    const iovec here = {&asked, CLONE_ARGS_SIZE_VER0};
    const iovec there = {reinterpret_cast<void*>(call.arguments[0]), CLONE_ARGS_SIZE_VER0};
    const int64_t copied = sys::raw_call6(SYS_process_vm_readv, sys::raw_process_id(),
                                          reinterpret_cast<uint64_t>(&here), 1,
                                          reinterpret_cast<uint64_t>(&there), 1, 0);
    if (copied == -EFAULT) return {.is_understood = false};
    if (copied < 0) asked = *static_cast<const clone_args*>(there.iov_base);
    return {.flags = asked.flags, .stack = asked.stack};
}

}  // namespace

// On a stack of its own the child could not come back through here.
Fork fork_of(const hook::SystemCall& call) noexcept {
    const Asked asked = asked_of(call);
    if (!asked.is_understood || (asked.flags & CLONE_VM) != 0) return Fork::kNone;
    return asked.stack == 0 ? Fork::kHere : Fork::kElsewhere;
}

void leave_alone(Task& task) noexcept {
    if (!TaskTable::is_here()) return;
    const TurnGuard guard(one_at_a_time, kPatienceMs);
    if (task.is_left_alone.exchange(true)) return;
    tasks_left_alone.fetch_add(1);
    advise(task.partition.whole(), MADV_DOFORK);
}

// The child finds the partition as if nobody were changing it.
int64_t fork_task(Task& task, const hook::SystemCall& call) noexcept {
    if (!TaskTable::is_here()) {
        const TurnGuard guard(task.partition.turn());
        return hook::raw_system_call(call.number, call.arguments);
    }
    const TurnGuard first(one_at_a_time, kPatienceMs);
    if (!first.is_held()) return -EAGAIN;
    const TurnGuard guard(task.partition.turn());
    keep_from_children_of(task);
    if (!task.is_left_alone) advise(task.partition.whole(), MADV_DOFORK);
    return hook::raw_system_call(call.number, call.arguments);
}

}  // namespace hanare::space
