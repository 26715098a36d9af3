// SPDX-License-Identifier: Apache-2.0
//
// A function on another stack than the thread's own, which may be in memory that is about to be
// unmapped.
#pragma once

#include <cstddef>

namespace hanare::sys {

// Calls body(argument) on the stack that ends at `top`, a multiple of 16.  With all signals blocked
// but faults, whose handlers continue there where they have no stack of their own; nothing unwinds
// through it.  Async-signal-safe.
inline void call_on_stack(std::byte* top, void (*body)(void* argument), void* argument) noexcept {
    asm volatile(
        "movq    %%rsp, %%rbx\n\t"
        "movq    %[top], %%rsp\n\t"
        "call    *%[body]\n\t"
        "movq    %%rbx, %%rsp"
        : "+D"(argument)
        : [top] "r"(top), [body] "r"(body)
        : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
}

}  // namespace hanare::sys
