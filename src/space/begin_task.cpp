// SPDX-License-Identifier: Apache-2.0
//
// Until it begins, the new process has no libc: the register that points to a thread's variables is
// the root's.
#include "space/begin_task.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "space/task_table.hpp"
#include "sys/futex.hpp"
#include "sys/raw_thread.hpp"
#include "task/signal_action.hpp"

namespace hanare::space {

namespace {

uint64_t bits(const void* memory) { return reinterpret_cast<uint64_t>(memory); }

void set_action(unsigned number, uint64_t handler) {
    task::SignalAction action;
    action.handler = handler;
    sys::raw_call6(SYS_rt_sigaction, number, bits(&action), 0, sizeof action.mask, 0, 0);
}

// As exec does: what is handled is no longer, what is ignored stays so.
void forget_handlers() {
    for (unsigned number = 1; number <= task::kSignals; ++number) {
        if (task::signal_action(number).handler > 1) set_action(number, 0);
    }
}

// Out of each other's way first.  0 or an errno value.
int take_descriptors(const Inheritance& inherited) {
    uint64_t above = 3;
    for (const int number : inherited.numbers) {
        above = above > static_cast<uint64_t>(number) ? above : static_cast<uint64_t>(number) + 1;
    }
    for (size_t i = 0; i < inherited.numbers.size(); ++i) {
        const int64_t moved = sys::raw_call3(
            SYS_fcntl, static_cast<uint64_t>(inherited.descriptors[i]), F_DUPFD, above);
        if (moved < 0) return static_cast<int>(-moved);
        inherited.room[i] = static_cast<int>(moved);
    }
    sys::raw_call3(SYS_close_range, 0, above - 1, 0);
    for (size_t i = 0; i < inherited.numbers.size(); ++i) {
        sys::raw_call3(SYS_dup3, static_cast<uint64_t>(inherited.room[i]),
                       static_cast<uint64_t>(inherited.numbers[i]), 0);
    }
    sys::raw_call3(SYS_close_range, above, ~0U, 0);
    return 0;
}

// 0, or an errno value: it is not begun with less than its proxy has.
int take(const Inheritance& inherited) {
    sys::raw_call3(SYS_umask, inherited.umask, 0, 0);
    int64_t result = sys::raw_call3(SYS_fchdir, static_cast<uint64_t>(inherited.directory), 0, 0);
    if (result < 0) return static_cast<int>(-result);
    // Descriptors are moved while there is room for twice as many.
    if (const int error = take_descriptors(inherited); error != 0) return error;
    for (size_t i = 0; i < inherited.limits.size(); ++i) {
        result = sys::raw_call6(SYS_prlimit64, 0, i, bits(&inherited.limits[i]), 0, 0, 0);
        if (result < 0) return static_cast<int>(-result);
    }
    if (!inherited.processors.empty()) {
        sys::raw_call3(SYS_sched_setaffinity, 0, inherited.processors.size(),
                       bits(inherited.processors.data()));
    }
    for (unsigned number = 1; number <= task::kSignals; ++number) {
        const bool is_ignored = (inherited.ignored_signals >> (number - 1) & 1) != 0;
        set_action(number, is_ignored ? 1 : 0);
    }
    // From here on it is sent what its group is.  A group of another session is none for it, and
    // then its proxy passes on what the group is sent.
    sys::raw_call3(SYS_setpgid, 0, static_cast<uint64_t>(inherited.group), 0);
    return 0;
}

// What goes to the new process.
struct Passed {
    const Beginning* beginning;
    pid_t root;
    int error = 0;
    std::atomic<uint32_t> has_begun{0};  // or not, for that error
};

void tell(Passed& passed) {
    passed.has_begun.store(1);
    sys::raw_call3(SYS_futex, bits(&passed.has_begun), FUTEX_WAKE_PRIVATE, 1);
}

[[noreturn]] void begin(Passed* passed) {
    const Beginning* const beginning = passed->beginning;
    sys::raw_call3(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0);
    if (sys::raw_call3(SYS_getppid, 0, 0, 0) != passed->root) {
        sys::raw_call3(SYS_exit_group, 127, 0, 0);
    }
    if (beginning->inherited != nullptr) {
        passed->error = take(*beginning->inherited);
        if (passed->error != 0) {
            tell(*passed);
            sys::raw_call3(SYS_exit_group, 127, 0, 0);
        }
    } else {
        forget_handlers();
    }
    sys::raw_call3(SYS_prctl, PR_SET_NAME, bits(beginning->name), 0);
    const uint64_t entry = beginning->entry;
    const uint64_t stack_pointer = beginning->stack_pointer;
    const uint64_t mask = beginning->signal_mask;
    // Before it can tell anybody its number.
    TaskTable::begin_process(*beginning->task, sys::raw_process_id());
    tell(*passed);
    sys::raw_call6(SYS_rt_sigprocmask, SIG_SETMASK, bits(&mask), 0, sizeof mask, 0, 0);
    // No function to call at the end (rdx), no caller (rbp).
    asm volatile(
        "mov %0, %%rsp\n\t"
        "xor %%edx, %%edx\n\t"
        "xor %%ebp, %%ebp\n\t"
        "jmp *%1"
        :
        : "r"(stack_pointer), "a"(entry)
        : "rdx", "memory");
    __builtin_unreachable();
}

// It may be killed before it has begun.
constexpr int kLookEveryMs = 100;
bool has_ended(pid_t process) {
    siginfo_t info = {};
    return waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == process;
}

}  // namespace

Result<pid_t> begin_task(const Beginning& beginning, std::span<std::byte> stack) {
    Passed passed = {.beginning = &beginning, .root = static_cast<pid_t>(sys::raw_process_id())};
    const uint64_t top = (bits(stack.data()) + stack.size()) / 16 * 16;
    int64_t result = SYS_clone;
    register uint64_t none asm("r10") = 0;
    register Passed* context asm("r12") = &passed;
    register void (*function)(Passed*) asm("r14") = &begin;
    // The new process comes out with the same registers, on its own stack, and has no caller.
    asm volatile(
        "syscall\n\t"
        "test %%rax, %%rax\n\t"
        "jnz 1f\n\t"
        "xor %%ebp, %%ebp\n\t"
        "mov %%r12, %%rdi\n\t"
        "call *%%r14\n\t"
        "ud2\n"
        "1:"
        : "+a"(result)
        : "D"(uint64_t{CLONE_VM | SIGCHLD}), "S"(top), "d"(uint64_t{0}), "r"(none), "r"(context),
          "r"(function)
        : "rcx", "r11", "r8", "memory");
    if (result <= 0) {
        return fail_errno(HANARE_STATUS_SYSTEM, static_cast<int>(-result), "beginning a task");
    }
    const auto process = static_cast<pid_t>(result);
    while (passed.has_begun.load() == 0 && !has_ended(process)) {
        sys::futex_wait(passed.has_begun, 0, kLookEveryMs);
    }
    if (passed.has_begun.load() != 0 && passed.error == 0) return process;
    waitpid(process, nullptr, 0);
    if (passed.error == 0) {
        return fail(HANARE_STATUS_SYSTEM, "the task was killed before it had begun");
    }
    return fail_errno(HANARE_STATUS_LIMIT, passed.error,
                      "a task's descriptors, directory and limits");
}

}  // namespace hanare::space
