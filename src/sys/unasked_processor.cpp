// SPDX-License-Identifier: Apache-2.0
//
// What runs before the C library does calls nothing of it, and uses neither its thread-local memory
// nor its functions for memory, which are not bound yet.
#include "sys/unasked_processor.hpp"

#include <asm/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <csignal>
#include <cstdint>

#include "sys/raw_thread.hpp"

extern "C" {
void hanare_signal_return() noexcept;
void hanare_answer_unasked() noexcept;
}

asm(R"(
    .pushsection .text
    .balign 16
    .globl  hanare_start_unasked
    .hidden hanare_start_unasked
    .type   hanare_start_unasked, @function
hanare_start_unasked:                   # as the kernel enters a program: rdx is _start's
    .cfi_startproc
    .cfi_undefined %rip
    pushq   %rdx
    movq    %rsp, %rbx
    andq    $-16, %rsp
    call    hanare_answer_unasked
    movq    %rbx, %rsp
    popq    %rdx
    jmp     _start
    .cfi_endproc
    .size   hanare_start_unasked, . - hanare_start_unasked

    .balign 16
    .globl  hanare_signal_return
    .hidden hanare_signal_return
    .type   hanare_signal_return, @function
hanare_signal_return:
    movl    $15, %eax                   # rt_sigreturn
    syscall
    .size   hanare_signal_return, . - hanare_signal_return
    .popsection
)");

namespace hanare::sys {
namespace {

// As the kernel has it.
struct SignalAction {
    void (*handler)(int, siginfo_t*, void*);
    uint64_t flags;
    void (*restorer)() noexcept;
    uint64_t mask;
};
constexpr uint64_t kHasRestorer = 0x0400'0000;
constexpr uint64_t kMaskBytes = sizeof(uint64_t);

constinit SignalAction before = {};
constinit bool answers = false;

int64_t change_action(const SignalAction& action, SignalAction* old) noexcept {
    return raw_call6(SYS_rt_sigaction, SIGSEGV, reinterpret_cast<uint64_t>(&action),
                     reinterpret_cast<uint64_t>(old), kMaskBytes, 0, 0);
}

bool is_blocked(int number) noexcept {
    uint64_t mask = 0;
    raw_call6(SYS_rt_sigprocmask, SIG_BLOCK, 0, reinterpret_cast<uint64_t>(&mask), kMaskBytes, 0,
              0);
    return (mask >> (number - 1) & 1) != 0;
}

struct Answer {
    uint32_t a, b, c, d;
};

// What every x86-64 processor has: FPU, TSC, MSR, CX8, CMOV, FXSR, SSE and SSE2 among others; NX
// and long mode.  The maker's name is empty.
Answer answer_to(uint32_t question) noexcept {
    constexpr uint32_t kExtended = 0x8000'0000;
    switch (question) {
        case 0: return {1, 0, 0, 0};
        case 1: return {0x600, 0, 0, 0x078b'fbff};
        case kExtended: return {kExtended + 1, 0, 0, 0};
        case kExtended + 1: return {0, 0, 0, 0x2010'0800};
        default: return {};
    }
}

void on_fault(int, siginfo_t*, void* context) noexcept {
    greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    const auto* const code = reinterpret_cast<const uint8_t*>(registers[REG_RIP]);
    if (code[0] != 0x0f || code[1] != 0xa2) {
        // Any other fault comes again, and is nobody's any more.
        change_action({.handler = nullptr, .flags = 0, .restorer = nullptr, .mask = 0}, nullptr);
        return;
    }
    const Answer answer = answer_to(static_cast<uint32_t>(registers[REG_RAX]));
    registers[REG_RAX] = answer.a;
    registers[REG_RBX] = answer.b;
    registers[REG_RCX] = answer.c;
    registers[REG_RDX] = answer.d;
    registers[REG_RIP] += 2;
}

}  // namespace

void ask_processor_again() noexcept {
    if (!answers) return;
    answers = false;
    raw_call6(SYS_arch_prctl, ARCH_SET_CPUID, 1, 0, 0, 0, 0);
    change_action(before, nullptr);
}

}  // namespace hanare::sys

extern "C" void hanare_answer_unasked() noexcept {
    using namespace hanare::sys;
#if defined(__GLIBC__) && !__GLIBC_PREREQ(2, 36)
    return;  // it takes the sizes of caches for 0 that nobody tells it, and copies by them
#endif
    if (is_blocked(SIGSEGV)) return;
    const SignalAction action = {.handler = on_fault,
                                 .flags = SA_SIGINFO | kHasRestorer,
                                 .restorer = hanare_signal_return,
                                 .mask = 0};
    if (change_action(action, &before) != 0) return;
    answers = raw_call6(SYS_arch_prctl, ARCH_SET_CPUID, 0, 0, 0, 0, 0) == 0;
    if (!answers) change_action(before, nullptr);
}
