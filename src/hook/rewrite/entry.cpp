// SPDX-License-Identifier: Apache-2.0
//
// Where the stubs of rewritten system calls enter Hanare.  Of a system call nobody asked for it
// costs the table look-up; of one whose handler is asked for some memory only, another for each of
// its addresses and one for the stack.
//
// On entry: rax, rdi, rsi, rdx, r10, r8, r9 as for `syscall`; rcx and r11, which the instruction
// destroys anyway, are free; the stack pointer is 136 bytes below the program's (its red zone and
// the return address into the stub).  Returns with the program's stack pointer, rcx being 0 where
// the stub, or the program, makes the system call, or else where the stub jumps to, r11 being the
// stub's address that was returned to.  Flags are kept, as the instruction keeps them: Rust's
// compilers rely on it.
//
// A transfer that may begin at once is made here, since asking for it takes longer than most; if it
// was all transferred nobody needs to hear of it.
//
// That the entry has returned before any system call is made is for the processor, which foresees
// where functions return to from the calls it has seen: left by a jump only, the entry would make
// it mistake all functions that return next, and with kernels that spoil what it remembers ("Safe
// RET") no return behind a system call is foreseen.  Nor are jumps that are taken there: from what
// is made here one leads to the program, unless the stub has replaced what follows there.
#include <cpuid.h>

#include <algorithm>
#include <cstddef>

#include "hook/rewrite/entry.hpp"
#include "hook/rewrite/stub.hpp"
#include "hook/rewrite/system_call.hpp"

namespace hanare::hook {

static_assert(sizeof(SystemCall) == 104 && offsetof(SystemCall, arguments) == 8 &&
              offsetof(SystemCall, caller) == 56 && offsetof(SystemCall, stack) == 64 &&
              offsetof(SystemCall, cleared) == 72 && offsetof(SystemCall, watched) == 80 &&
              offsetof(SystemCall, after) == 88);
static_assert(static_cast<int>(Wanted::kTransfer) == 1 &&
              static_cast<int>(Wanted::kReadAtOffset) == 2 &&
              static_cast<int>(Wanted::kWhereSecondIs) == 3 &&
              static_cast<int>(Wanted::kWhereFirstIs) == 4 &&
              static_cast<int>(Wanted::kWhereFirstTwoAre) == 5 &&
              static_cast<int>(Wanted::kWhereFirstThreeAre) == 6 &&
              static_cast<int>(Wanted::kWhereAnyIs) == 7 && static_cast<int>(Wanted::kAlways) == 8);
static_assert(static_cast<int>(Verdict::kNative) == 1 &&
              static_cast<int>(Verdict::kThenAfter) == 2 && kPlaceBytes == uint64_t{1} << 32);
static_assert(sizeof hanare_hook_files == 0x20000 && kFiles == 0x10000);
static_assert(static_cast<int>(Place::kNear) == 1 && static_cast<int>(Place::kNearInParts) == 2 &&
              kPlaces == 0x10000 && kPartBytes == 0x10000);
static_assert(sizeof hanare_hook_wanted == 0x10000 && sizeof hanare_hook_places == 0x20000 &&
              kStubBytes == 64 && kStubReturnAt == 56 && kStubBehindAt == kStubCallEnd + 21 &&
              kStubRedZoneBytes == 128 && kStubSyscallAt == 4 && kStubCallBytes == 17);

extern "C" {
uint8_t hanare_hook_wanted[kWantedBytes] = {};
uint8_t hanare_hook_places[kPlaces + kParts] = {};
uint8_t hanare_hook_files[2 * kFiles] = {};
constinit std::atomic<bool> hanare_hook_files_change_unseen{false};
constinit std::atomic<bool> hanare_hook_threads_begin_unseen{false};
}

asm(R"(
    .macro  load_arguments              # from the SystemCall at the stack pointer
    movq    8(%rsp), %rdi
    movq    16(%rsp), %rsi
    movq    24(%rsp), %rdx
    movq    32(%rsp), %r10
    movq    40(%rsp), %r8
    movq    48(%rsp), %r9
    .endm

    .macro  look_at register, near=2b   # bits 32 to 47, then 16 to 31; changes no flags
    movq    \register, -8(%rsp)
    movzwl  -4(%rsp), %ecx
    movzbl  (%r11,%rcx), %ecx
    jrcxz   9f
    leaq    -1(%rcx), %rcx
    jrcxz   8f
    movzwl  -6(%rsp), %ecx
    movzbl  0x10000(%r11,%rcx), %ecx
    jrcxz   9f
8:  jmp     \near
9:
    .endm

    .macro  transfer files              # which of them let it begin
    look_at %rsi, 32f
    look_at %rsp
    ret     $128
32: look_at %rsp
    movq    %rdi, -8(%rsp)
    movzwl  -6(%rsp), %ecx              # of an int only the lower half is told
    jrcxz   33f
    jmp     2b
33: movzwl  %di, %ecx
    leaq    \files(%rip), %r11
    movzbl  (%r11,%rcx), %ecx
    jrcxz   34f
    movq    (%rsp), %r11
    leaq    hanare_hook_transfer(%rip), %rcx
    ret     $128
34: jmp     2b
    .endm

    .macro  come_from_stub              # which has jumped, with its address in r11
    .cfi_startproc
    .cfi_def_cfa %rsp, 0
    .cfi_register %rip, %r11
    leaq    -128(%rsp), %rsp
    .cfi_def_cfa_offset 128
    pushq   %r11
    .cfi_def_cfa_offset 136
    .cfi_offset %rip, -136
    .endm

    .macro  ask number, whom            # from the stub's address in r11 and on the stack
    pushq   %rbp
    .cfi_def_cfa_offset 144
    .cfi_offset %rbp, -144
    movq    %rax, %rbp
    lahf                                # pushfq and popfq take several times as long
    seto    %al
    pushq   %rax
    .cfi_def_cfa_offset 152
    movq    %rbp, %rax
    leaq    8(%rsp), %rbp
    .cfi_def_cfa %rbp, 144
    andq    $-64, %r11                  # the stub
    movq    56(%r11), %r11              # where the program goes on
    subq    $112, %rsp
    andq    $-16, %rsp
    movq    \number, (%rsp)
    movq    %rdi, 8(%rsp)
    movq    %rsi, 16(%rsp)
    movq    %rdx, 24(%rsp)
    movq    %r10, 32(%rsp)
    movq    %r8, 40(%rsp)
    movq    %r9, 48(%rsp)
    leaq    144(%rbp), %rcx
    movq    %r11, 56(%rsp)
    movq    %rcx, 64(%rsp)
    movq    %rsp, %rdi
    movq    %rax, %rsi                  # the result, where there is one
    cld
    call    \whom
    addq    $6, 8(%rbp)                 # behind the stub's system call
    cmpl    $1, %eax
    ja      5f
    addl    %eax, %eax
    subq    %rax, 8(%rbp)               # kNative: at it
    movq    (%rsp), %rax
    load_arguments
6:  movq    %rax, %rcx
    movq    -8(%rbp), %rax
    addb    $127, %al                   # the overflow flag
    sahf                                # and the others
    movq    %rcx, %rax
    leave
    .cfi_def_cfa %rsp, 136
    .cfi_restore %rbp
    popq    %r11
    .cfi_def_cfa_offset 128
    .cfi_register %rip, %r11
    leaq    128(%rsp), %rsp
    .cfi_def_cfa_offset 0
    jmp     *%r11
    .cfi_def_cfa %rbp, 144
    .cfi_offset %rbp, -144
    .cfi_offset %rip, -136
5:  movq    (%rsp), %rax                # kThenAfter
    load_arguments
    syscall
    movq    72(%rsp), %rcx
    movq    $0, (%rcx)
    movq    80(%rsp), %rcx
    cmpl    $0, (%rcx)
    je      6b
    movq    %rax, (%rsp)
    movq    %rsp, %rdi
    call    *88(%rsp)
    movq    (%rsp), %rax
    load_arguments
    jmp     6b
    .endm

    .pushsection .text
    .balign 64
    .globl  hanare_hook_entry
    .hidden hanare_hook_entry
    .type   hanare_hook_entry, @function
hanare_hook_entry:
    .cfi_startproc
    .cfi_def_cfa %rsp, 136
    .cfi_offset %rip, -136
    movzwl  %ax, %ecx                   # as much as the table has; the rest is the dispatcher's
    leaq    hanare_hook_wanted(%rip), %r11
    movzbl  (%r11,%rcx), %ecx           # changes no flags, as all up to where they are saved
    jrcxz   1f
    leaq    hanare_hook_places(%rip), %r11
    leaq    -1(%rcx), %rcx
    jrcxz   10f
    leaq    -1(%rcx), %rcx
    jrcxz   20f
    leaq    -1(%rcx), %rcx
    jrcxz   3f
    leaq    -1(%rcx), %rcx
    jrcxz   4f
    leaq    -1(%rcx), %rcx
    jrcxz   5f
    leaq    -1(%rcx), %rcx
    jrcxz   6f
    leaq    -1(%rcx), %rcx
    jrcxz   7f
2:  movq    (%rsp), %r11
    leaq    hanare_hook_ask(%rip), %rcx
1:  ret     $128
20: jmp     21f                         # jrcxz reaches no farther
3:  jmp     13f
4:  jmp     14f
5:  jmp     15f
6:  jmp     16f
7:  jmp     17f
10: transfer hanare_hook_files+0x10000
16: look_at %rdx
15: look_at %rsi
14: look_at %rdi
    look_at %rsp
    ret     $128                        # of no concern to the handler
13: look_at %rsi
    look_at %rsp
    ret     $128
17: look_at %r10
    look_at %r8
    look_at %r9
    jmp     16b
21: transfer hanare_hook_files
    .cfi_endproc
    .size   hanare_hook_entry, . - hanare_hook_entry

    .balign 64
    .type   hanare_hook_ask, @function
hanare_hook_ask:
    come_from_stub
    ask     %rax, hanare_hook_dispatch
    .cfi_endproc
    .size   hanare_hook_ask, . - hanare_hook_ask

    .balign 64
    .type   hanare_hook_transfer, @function
hanare_hook_transfer:                   # of a file that lets it begin
    come_from_stub
    movq    %rax, -16(%rsp)
    syscall
    movq    %rax, %rcx
    notq    %rcx
    leaq    (%rdx,%rcx), %rcx           # negative if it was all transferred
    bswapq  %rcx                        # to its sign, without a flag
    movsbl  %cl, %ecx
    bswapl  %ecx
    movzbl  %cl, %ecx
    jrcxz   1f
    popq    %r11
    .cfi_def_cfa_offset 128
    .cfi_register %rip, %r11
    movq    21(%r11), %r11              # what is behind the stub's system call
    leaq    128(%rsp), %rsp
    .cfi_def_cfa_offset 0
    jmp     *%r11
    .cfi_def_cfa_offset 136
    .cfi_offset %rip, -136
1:  movq    -16(%rsp), %rcx
    jmp     hanare_hook_ask_again
    .cfi_endproc
    .size   hanare_hook_transfer, . - hanare_hook_transfer

    .balign 64
    .type   hanare_hook_ask_again, @function
hanare_hook_ask_again:                  # from above: rcx is the number, rax the result
    .cfi_startproc
    .cfi_def_cfa %rsp, 136
    .cfi_offset %rip, -136
    movq    (%rsp), %r11
    ask     %rcx, hanare_hook_dispatch_again
    .cfi_endproc
    .size   hanare_hook_ask_again, . - hanare_hook_ask_again
    .purgem ask
    .purgem come_from_stub
    .purgem transfer
    .purgem load_arguments
    .purgem look_at

    .balign 16
    .globl  hanare_hook_with_vector_registers
    .hidden hanare_hook_with_vector_registers
    .type   hanare_hook_with_vector_registers, @function
hanare_hook_with_vector_registers:
    .cfi_startproc
    pushq   %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    movq    %rsp, %rbp
    .cfi_def_cfa_register %rbp
    pushq   %rbx
    .cfi_offset %rbx, -24
    movq    %rdi, %r10
    movq    %rsi, %rdi
    movl    hanare_hook_vector_bytes(%rip), %ecx
    cmpl    $-1, %ecx
    je      5f
2:  subq    %rcx, %rsp
    andq    $-64, %rsp
    movq    %rsp, %rbx
    testl   %ecx, %ecx
    jz      3f
    xorl    %eax, %eax                  # the header behind the first 512 bytes
    movq    %rax, 512(%rbx)
    movq    %rax, 520(%rbx)
    movq    %rax, 528(%rbx)
    movq    %rax, 536(%rbx)
    movq    %rax, 544(%rbx)
    movq    %rax, 552(%rbx)
    movq    %rax, 560(%rbx)
    movq    %rax, 568(%rbx)
    movl    $0xe7, %eax                 # x87, SSE, AVX, AVX-512
    xorl    %edx, %edx
    xsave64 (%rbx)
    call    *%r10
    movl    $0xe7, %eax
    xorl    %edx, %edx
    xrstor64 (%rbx)
    jmp     4f
3:  subq    $512, %rsp
    movq    %rsp, %rbx
    fxsave64 (%rbx)
    call    *%r10
    fxrstor64 (%rbx)
4:  movq    -8(%rbp), %rbx
    .cfi_restore %rbx
    leave
    .cfi_remember_state
    .cfi_def_cfa %rsp, 8
    .cfi_restore %rbp
    ret
    .cfi_restore_state
5:  pushq   %rdi                        # for the first time: how many bytes are needed
    pushq   %r10
    subq    $8, %rsp
    call    hanare_hook_measure_vector_state
    addq    $8, %rsp
    popq    %r10
    popq    %rdi
    movl    hanare_hook_vector_bytes(%rip), %ecx
    jmp     2b
    .cfi_endproc
    .size   hanare_hook_with_vector_registers, . - hanare_hook_with_vector_registers
    .popsection
)");

// How many bytes XSAVE writes for the components that are saved; 0 where the kernel does not offer
// it; all ones until it is needed, which in most programs it never is, and asking takes time
// (sys/processor.hpp).
extern "C" {
uint32_t hanare_hook_vector_bytes = ~uint32_t{0};
void hanare_hook_measure_vector_state() noexcept;
}

namespace {

uint32_t vector_bytes() noexcept {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    constexpr unsigned kOsxsave = 1U << 27;
    constexpr unsigned kStateLeaf = 13;  // exists where there is XSAVE
    __cpuid(1, a, b, c, d);
    if ((c & kOsxsave) == 0) return 0;
    // All components that the kernel has switched on; only matrices (AMX) make that much more than
    // what is saved here.
    constexpr uint32_t kWithoutMatricesMax = 4096;
    __cpuid_count(kStateLeaf, 0, a, b, c, d);
    if (b != 0 && b <= kWithoutMatricesMax) return b;
    // For each component its size and where it begins.  x87 and SSE come first.
    uint32_t bytes = 576;
    for (const unsigned component : {2U, 5U, 6U, 7U}) {
        __cpuid_count(kStateLeaf, component, a, b, c, d);
        if (a != 0) bytes = std::max(bytes, a + b);
    }
    return bytes;
}

}  // namespace

// From above.  Whoever comes first measures; all get the same.
extern "C" void hanare_hook_measure_vector_state() noexcept {
    hanare_hook_vector_bytes = vector_bytes();
}

}  // namespace hanare::hook
