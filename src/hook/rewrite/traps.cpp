// SPDX-License-Identifier: Apache-2.0
#include "hook/rewrite/traps.hpp"

#include <sys/syscall.h>
#include <ucontext.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <iterator>

#include "hook/claims.hpp"
#include "hook/disposition.hpp"
#include "hook/kernel_signals.hpp"
#include "hook/rewrite/dispatch.hpp"
#include "hook/rewrite/entry.hpp"
#include "hook/rewrite/modules.hpp"
#include "hook/signal_mask.hpp"
#include "hook/system_calls.hpp"
#include "sys/process_usage.hpp"
#include "sys/signal.hpp"
#include "sys/user_dispatch.hpp"
#include "telemetry/log.hpp"

namespace hanare::hook {

// Unwinders and debuggers know these bytes: what a signal handler returns to.  That of libc lies
// where system calls are stopped.
extern "C" void hanare_hook_trap_return() noexcept;
asm(R"(
    .pushsection .text
    .balign 16
    nop                                 # unwinders look up the place before
    .globl  hanare_hook_trap_return
    .hidden hanare_hook_trap_return
    .type   hanare_hook_trap_return, @function
hanare_hook_trap_return:
    .byte   0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00   # mov $15, %rax
    syscall
    .size   hanare_hook_trap_return, . - hanare_hook_trap_return
    .popsection
)");

namespace {

constexpr uint64_t kSyscallBytes = 2;
constexpr int kSignals = 64;
constexpr sys::SignalBits kTrapBit = sys::SignalBits{1} << (SIGSYS - 1);

// From 13 on libgcc keeps what it knows of frames in nodes that it allocates: not inside malloc.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 13
constexpr bool kUnwinderAllocates = true;
#else
constexpr bool kUnwinderAllocates = false;
#endif

// Each takes a microsecond or so.
constexpr uint32_t kTrapsMax = 400;

std::atomic<bool> are_on{false};
uint32_t taken = 0;

// What does in a signal handler what it does elsewhere.  Not what looks at the stack pointer, the
// signal mask or the place that it is called from, makes threads and processes, or changes what is
// mapped: the program's code must be as it was when it is rewritten.
constexpr std::array<bool, kSystemCallNumbers> numbers_for_handler() {
    std::array<bool, kSystemCallNumbers> numbers = {};
    for (const int number : {SYS_read,         SYS_write,        SYS_open,
                             SYS_close,        SYS_stat,         SYS_fstat,
                             SYS_lstat,        SYS_poll,         SYS_lseek,
                             SYS_mmap,         SYS_munmap,       SYS_brk,
                             SYS_ioctl,        SYS_pread64,      SYS_pwrite64,
                             SYS_readv,        SYS_writev,       SYS_access,
                             SYS_pipe,         SYS_dup,          SYS_dup2,
                             SYS_nanosleep,    SYS_getpid,       SYS_execve,
                             SYS_exit,         SYS_wait4,        SYS_uname,
                             SYS_fcntl,        SYS_fsync,        SYS_truncate,
                             SYS_ftruncate,    SYS_getcwd,       SYS_chdir,
                             SYS_rename,       SYS_mkdir,        SYS_rmdir,
                             SYS_link,         SYS_unlink,       SYS_symlink,
                             SYS_readlink,     SYS_chmod,        SYS_fchmod,
                             SYS_chown,        SYS_umask,        SYS_gettimeofday,
                             SYS_getrlimit,    SYS_getrusage,    SYS_sysinfo,
                             SYS_times,        SYS_getuid,       SYS_getgid,
                             SYS_geteuid,      SYS_getegid,      SYS_getppid,
                             SYS_getpgrp,      SYS_getgroups,    SYS_getresuid,
                             SYS_getresgid,    SYS_getpgid,      SYS_getsid,
                             SYS_utimensat,    SYS_statfs,       SYS_fstatfs,
                             SYS_gettid,       SYS_time,         SYS_getxattr,
                             SYS_lgetxattr,    SYS_fgetxattr,    SYS_sched_getaffinity,
                             SYS_getdents64,   SYS_fadvise64,    SYS_clock_gettime,
                             SYS_clock_getres, SYS_exit_group,   SYS_openat,
                             SYS_mkdirat,      SYS_newfstatat,   SYS_unlinkat,
                             SYS_renameat,     SYS_linkat,       SYS_symlinkat,
                             SYS_readlinkat,   SYS_fchmodat,     SYS_fchownat,
                             SYS_faccessat,    SYS_fallocate,    SYS_dup3,
                             SYS_pipe2,        SYS_prlimit64,    SYS_renameat2,
                             SYS_getrandom,    SYS_statx,        SYS_copy_file_range,
                             SYS_faccessat2,   SYS_rt_sigaction, SYS_sendfile,
                             SYS_futex,        SYS_socket,       SYS_connect}) {
        numbers[static_cast<size_t>(number)] = true;
    }
    return numbers;
}
constexpr std::array<bool, kSystemCallNumbers> kForHandler = numbers_for_handler();

constexpr uint64_t kFixed = 0x10 | 0x100000;  // MAP_FIXED, MAP_FIXED_NOREPLACE

bool has_handler(const KernelSigaction& action) noexcept {
    return action.handler != reinterpret_cast<void*>(SIG_DFL) &&
           action.handler != reinterpret_cast<void*>(SIG_IGN);
}

bool is_for_handler(const SystemCall& call) noexcept {
    if (call.number >= kSystemCallNumbers || !kForHandler[call.number]) return false;
    if (call.number == SYS_mmap) {
        return !maps_code_of_a_file(call) && (call.arguments[3] & kFixed) == 0;
    }
    // With a handler, system calls are interrupted; and the program may ask for ours.
    const bool asks_only = call.arguments[1] == 0 && call.arguments[0] != SIGSYS;
    return call.number != SYS_rt_sigaction || asks_only;
}

SystemCall call_of(const gregset_t& registers) noexcept {
    const auto value = [&](int index) { return static_cast<uint64_t>(registers[index]); };
    SystemCall call = {};
    call.number = value(REG_RAX);
    constexpr int kArguments[] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};
    for (size_t i = 0; i < std::size(kArguments); ++i) call.arguments[i] = value(kArguments[i]);
    call.caller = reinterpret_cast<const std::byte*>(value(REG_RIP));
    call.stack = reinterpret_cast<std::byte*>(value(REG_RSP));
    return call;
}

void on_trap(int, siginfo_t* info, void* context) {
    if (info->si_code != sys::kUserDispatchCode) return take_default_action(*info);
    const int error = errno;
    gregset_t& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    SystemCall call = call_of(registers);
    PendingCall pending{.behind = reinterpret_cast<const uint8_t*>(call.caller)};
    const PendingCallNote note(pending);
    const bool is_native = sys::is_of_native_table(*info);
    if (is_native && call.number == SYS_rt_sigreturn) {
        // From the handler for faults, which libc has installed: the frame is where it must be.
        registers[REG_RIP] = reinterpret_cast<greg_t>(hanare_hook_trap_return);
    } else if (is_native && ++taken <= kTrapsMax && is_for_handler(call)) {
        make_system_call(call);
        registers[REG_RAX] = static_cast<greg_t>(call.number);
        if (pending.goes_on != nullptr) {
            registers[REG_RIP] = reinterpret_cast<greg_t>(pending.goes_on);
        }
    } else {
        if (const Result<void> caught = catch_system_calls(); !caught) {
            telemetry::log(telemetry::LogLevel::kWarn,
                           "no system call is caught, and no memory will be far: %s",
                           caught.error().text);
        }
        registers[REG_RIP] = pending.entry != nullptr
                                 ? reinterpret_cast<greg_t>(pending.entry)
                                 : registers[REG_RIP] - static_cast<greg_t>(kSyscallBytes);
    }
    errno = error;
}

int64_t call_kernel(uint64_t number, uint64_t a, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0) {
    return raw_system_call(number, {a, b, c, d, 0, 0});
}

int64_t change_action(int signal_number, const KernelSigaction* action, KernelSigaction* before) {
    return call_kernel(SYS_rt_sigaction, static_cast<uint64_t>(signal_number),
                       reinterpret_cast<uint64_t>(action), reinterpret_cast<uint64_t>(before),
                       sizeof action->mask);
}

bool has_signal_handler(int number) noexcept {
    if (const DispositionCell* const kept = find_kept_disposition(number)) {
        return kept->read().has_handler();
    }
    KernelSigaction action = {};
    return change_action(number, nullptr, &action) == 0 && has_handler(action);
}

bool has_signal_handlers() noexcept {
    int number = 1;
    while (number <= kSignals && !has_signal_handler(number)) ++number;
    return number <= kSignals;
}

// The handlers of kept signals return by a system call of libc's, which is stopped: SIGSYS must not
// be blocked meanwhile.  Otherwise it is, since a handler of the program's has no place there.
void let_trap_interrupt_handlers(bool may) noexcept {
    for (const ClaimableSignal& pair : kClaimable) {
        for (const int number : {pair.signal_number, pair.stand_in}) {
            KernelSigaction action = {};
            if (find_kept_disposition(number) == nullptr) continue;
            if (change_action(number, nullptr, &action) != 0) continue;
            action.mask = may ? action.mask & ~kTrapBit : action.mask | kTrapBit;
            change_action(number, &action, nullptr);
        }
    }
}

// With room for the frames of several signals and for what a handler does in the place of the first
// large brk.  The program's own stack may be small, or what lies below it given back by the call.
bool has_stack() noexcept {
    constexpr size_t kLeastBytes = 64 << 10;
    stack_t stack = {};
    return call_kernel(SYS_sigaltstack, 0, reinterpret_cast<uint64_t>(&stack)) == 0 &&
           (stack.ss_flags & SS_DISABLE) == 0 && stack.ss_size >= kLeastBytes;
}

// The kernel kills who ignores or blocks what it stops with.
bool is_deliverable() noexcept {
    KernelSigaction action = {};
    sys::SignalBits blocked = 0;
    return change_action(SIGSYS, nullptr, &action) == 0 && action.handler == nullptr &&
           call_kernel(SYS_rt_sigprocmask, SIG_BLOCK, 0, reinterpret_cast<uint64_t>(&blocked),
                       sizeof blocked) == 0 &&
           (blocked & kTrapBit) == 0;
}

}  // namespace

bool begin_traps() noexcept {
    if (kUnwinderAllocates || !has_stack() || !is_deliverable() || has_signal_handlers() ||
        sys::is_traced()) {
        return false;
    }
    const Code own = own_code();
    constexpr uint64_t kRestorer = 0x04000000;
    const KernelSigaction action = {
        .handler = reinterpret_cast<void*>(on_trap),
        .flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART | kRestorer,
        .restorer = reinterpret_cast<void*>(hanare_hook_trap_return),
        .mask = 0};
    if (change_action(SIGSYS, &action, nullptr) != 0) return false;
    are_on.store(true);
    sys::keep_unblocked(kTrapBit);
    let_trap_interrupt_handlers(true);
    if (sys::begin_user_dispatch(own.data(), own.size()) == 0) return true;
    end_traps();
    return false;
}

void end_traps() noexcept {
    if (!are_on.exchange(false)) return;
    sys::end_user_dispatch();
    const KernelSigaction none = {};
    change_action(SIGSYS, &none, nullptr);
    let_trap_interrupt_handlers(false);
    sys::keep_unblocked(0);
}

}  // namespace hanare::hook
