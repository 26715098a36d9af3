// SPDX-License-Identifier: Apache-2.0
//
// Cases of arguments_sizes_test.cpp: processes, signals and futexes.
#include <asm/prctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ctime>

#include "intercept/argument_cases.hpp"

namespace hanare::intercept::argument_cases {

namespace {

void end_a_child() {
    const pid_t child = fork();
    if (child == 0) _exit(7);
}

void block_and_send_signal() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    raise(SIGUSR2);
}

constexpr uint64_t kUserSignal2 = 1U << (SIGUSR2 - 1);

// clang-format off
std::vector<Case> process_cases() {
    static Things& t = things();
    const auto pid = static_cast<uint64_t>(getpid());
    static const iovec buffer = {t.scratch.data(), 8};
    static const uint32_t capabilities_3[] = {0x20080522, 0};
    return {
        {"wait4", SYS_wait4, 1, Size::kExact,
         [](uint64_t p) { return Words{kNone, p, 0, 0}; }, {}, end_a_child},
        {"wait4_usage", SYS_wait4, 3, Size::kExact,
         [](uint64_t p) { return Words{kNone, 0, 0, p}; }, {}, end_a_child},
        {"waitid", SYS_waitid, 2, Size::kAtMost,
         [](uint64_t p) { return Words{P_ALL, 0, p, WEXITED, 0}; }, {}, end_a_child},
        {"waitid_usage", SYS_waitid, 4, Size::kExact,
         [](uint64_t p) { return Words{P_ALL, 0, 0, WEXITED, p}; }, {}, end_a_child},
        {"clone3", SYS_clone3, 0, Size::kExact,
         [](uint64_t p) { return Words{p, 88}; }, Bytes(88, 0xff)},
        {"getresuid", SYS_getresuid, 1, Size::kExact,
         [](uint64_t p) { return Words{word_of(&t.scratch), p, word_of(&t.scratch)}; }},
        {"capget", SYS_capget, 1, Size::kExact,
         [](uint64_t p) { return Words{word_of(capabilities_3), p}; }},
        {"capget_header", SYS_capget, 0, Size::kAtMost,
         [](uint64_t p) { return Words{p, 0}; }, bytes_of(uint64_t{1})},
        {"prlimit64", SYS_prlimit64, 3, Size::kExact,
         [](uint64_t p) { return Words{0, RLIMIT_NOFILE, 0, p}; }},
        {"getrlimit", SYS_getrlimit, 1, Size::kExact,
         [](uint64_t p) { return Words{RLIMIT_NOFILE, p}; }},
        {"setrlimit", SYS_setrlimit, 1, Size::kExact,
         [](uint64_t p) { return Words{RLIM_NLIMITS, p}; }, Bytes(16)},
        {"getrusage", SYS_getrusage, 1, Size::kExact, [](uint64_t p) { return Words{0, p}; }},
        {"times", SYS_times, 0, Size::kExact, [](uint64_t p) { return Words{p}; }},
        {"getcpu", SYS_getcpu, 0, Size::kExact, [](uint64_t p) { return Words{p, 0, 0}; }},
        {"prctl_name", SYS_prctl, 1, Size::kAtMost,
         [](uint64_t p) { return Words{PR_GET_NAME, p}; }},
        {"arch_prctl", SYS_arch_prctl, 1, Size::kExact,
         [](uint64_t p) { return Words{ARCH_GET_FS, p}; }},
        {"process_vm_readv", SYS_process_vm_readv, 1, Size::kExact,
         [=](uint64_t p) { return Words{pid, p, 1, word_of(&buffer), 1, 0}; }, bytes_of(buffer)},
        {"process_vm_readv_remote", SYS_process_vm_readv, 3, Size::kExact,
         [=](uint64_t p) { return Words{pid, word_of(&buffer), 1, p, 1, 0}; }, bytes_of(buffer)},
        {"process_madvise", SYS_process_madvise, 1, Size::kExact,
         [](uint64_t p) { return Words{fd(t.pidfd), p, 1, MADV_COLD, 0}; }, bytes_of(buffer)},
        {"get_robust_list", SYS_get_robust_list, 1, Size::kExact,
         [](uint64_t p) { return Words{0, p, word_of(&t.scratch)}; }},
        {"get_robust_list_length", SYS_get_robust_list, 2, Size::kExact,
         [](uint64_t p) { return Words{0, word_of(&t.scratch), p}; }},
    };
}

std::vector<Case> signal_cases() {
    const auto pid = static_cast<uint64_t>(getpid());
    stack_t stack = {};
    sigaltstack(nullptr, &stack);
    return {
        {"rt_sigaction", SYS_rt_sigaction, 1, Size::kExact,
         [](uint64_t p) { return Words{SIGUSR1, p, 0, 8}; }, Bytes(32)},
        {"rt_sigaction_old", SYS_rt_sigaction, 2, Size::kExact,
         [](uint64_t p) { return Words{SIGUSR1, 0, p, 8}; }},
        {"rt_sigprocmask", SYS_rt_sigprocmask, 1, Size::kExact,
         [](uint64_t p) { return Words{SIG_BLOCK, p, 0, 8}; }, Bytes(8)},
        {"rt_sigprocmask_old", SYS_rt_sigprocmask, 2, Size::kExact,
         [](uint64_t p) { return Words{SIG_BLOCK, 0, p, 8}; }},
        {"rt_sigpending", SYS_rt_sigpending, 0, Size::kExact,
         [](uint64_t p) { return Words{p, 8}; }},
        {"rt_sigtimedwait", SYS_rt_sigtimedwait, 0, Size::kExact,
         [](uint64_t p) { return Words{p, 0, 0, 8}; }, bytes_of(kUserSignal2),
         block_and_send_signal},
        {"rt_sigtimedwait_info", SYS_rt_sigtimedwait, 1, Size::kExact,
         [](uint64_t p) { return Words{word_of(&kUserSignal2), p, 0, 8}; }, {},
         block_and_send_signal},
        {"rt_sigqueueinfo", SYS_rt_sigqueueinfo, 2, Size::kAtMost,
         [=](uint64_t p) { return Words{pid, 0, p}; }, Bytes(128)},
        {"sigaltstack", SYS_sigaltstack, 0, Size::kExact,
         [](uint64_t p) { return Words{p, 0}; }, bytes_of(stack)},
        {"sigaltstack_old", SYS_sigaltstack, 1, Size::kExact,
         [](uint64_t p) { return Words{0, p}; }},
    };
}

std::vector<Case> futex_cases() {
    static Things& t = things();
    return {
        {"futex_time", SYS_futex, 3, Size::kExact,
         [](uint64_t p) { return Words{word_of(&t.futex_word), 0, 9, p}; }, Bytes(16)},
        {"futex_waitv", SYS_futex_waitv, 0, Size::kExact,
         [](uint64_t p) { return Words{p, 1, 0, 0, 0}; },
         bytes_of(uint64_t{9}, word_of(&t.futex_word), uint64_t{2})},
        {"futex_wait_time", 455, 4, Size::kExact,
         [](uint64_t p) {
             return Words{word_of(&t.futex_word), 9, UINT32_MAX, 2, p, CLOCK_MONOTONIC};
         }, Bytes(16)},
        {"futex_requeue", 456, 0, Size::kExact, [](uint64_t p) { return Words{p, 0, 0, 0}; },
         bytes_of(uint64_t{9}, word_of(&t.futex_word), uint64_t{2}, uint64_t{9},
                  word_of(&t.scratch), uint64_t{2})},
    };
}

// clang-format on

}  // namespace

std::vector<Case> cases_of_processes() {
    return joined({process_cases(), signal_cases(), futex_cases()});
}

}  // namespace hanare::intercept::argument_cases
