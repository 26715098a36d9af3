// SPDX-License-Identifier: Apache-2.0
//
// Compiled for general registers only: the child comes out of the system call here.
#include "intercept/forks.hpp"

#include <linux/sched.h>
#include <sys/syscall.h>

#include <cerrno>

#include "intercept/file_kinds.hpp"
#include "intercept/fork_steps.hpp"
#include "intercept/handler.hpp"
#include "intercept/intercept.hpp"
#include "intercept/may_read.hpp"

namespace hanare::intercept {

namespace {

constexpr uint64_t kClearsHandlers = 0x1'0000'0000;  // CLONE_CLEAR_SIGHAND

struct Wanted {
    bool is_valid = true;
    uint64_t flags = 0;
    uint64_t stack = 0;
};

Wanted wanted_of(const hook::SystemCall& call) {
    Wanted wanted;
    if (call.number == SYS_clone) {
        wanted.flags = static_cast<uint32_t>(call.arguments[0]);
        wanted.stack = call.arguments[1];
    } else if (call.number == SYS_clone3) {
        wanted.is_valid = call.arguments[1] >= CLONE_ARGS_SIZE_VER0 &&
                          may_read(*space(), call, call.arguments[0], CLONE_ARGS_SIZE_VER0);
        if (!wanted.is_valid) return wanted;
        const auto* arguments = reinterpret_cast<const clone_args*>(call.arguments[0]);
        wanted.flags = arguments->flags;
        wanted.stack = arguments->stack;
    }
    return wanted;
}

}  // namespace

hook::Verdict handle_fork(hook::SystemCall& call) {
    const Wanted wanted = wanted_of(call);
    if (!wanted.is_valid) return hook::Verdict::kNative;
    // A child without Hanare's handlers would end at its first fault.  As before Linux 5.5, so that
    // libc's posix_spawn falls back.
    if ((wanted.flags & kClearsHandlers) != 0) {
        call.finish(-EINVAL);
        return hook::Verdict::kDone;
    }
    // Which has the memory, and descriptors of its own.
    if ((wanted.flags & (CLONE_VM | CLONE_VFORK | CLONE_FILES)) == CLONE_VM) end_beginning();
    // A thread, or a child that borrows this memory until it execs.
    if ((wanted.flags & CLONE_VM) != 0) {
        if ((wanted.flags & CLONE_VFORK) == 0) space()->note_threads();
        return hook::Verdict::kNative;
    }
    ForkSteps steps;
    steps.has_stack = wanted.stack != 0;
    hook::hanare_hook_with_vector_registers(prepare_fork, &steps);
    if (steps.error != 0) {
        call.finish(-steps.error);
        return hook::Verdict::kDone;
    }
    // It would come out on another stack, and there is nothing to be done for it.
    if (steps.has_stack) return hook::Verdict::kNative;
    steps.child = hook::raw_system_call(call.number, call.arguments);
    hook::hanare_hook_with_vector_registers(steps.child == 0 ? finish_fork_in_child : finish_fork,
                                            &steps);
    call.finish(steps.child);
    return hook::Verdict::kDone;
}

}  // namespace hanare::intercept
