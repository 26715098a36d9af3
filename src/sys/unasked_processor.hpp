// SPDX-License-Identifier: Apache-2.0
//
// When a program starts the C library asks the processor what it can do, some 70 times.  In a
// virtual machine each `cpuid` goes to the host and back, which takes 10 us: all of them longer
// than all else that a small program does.  A static program with the entry point
//
//     hanare_start_unasked        (-Wl,-e,hanare_start_unasked)
//
// answers itself instead, as an x86-64 processor without any extension: the kernel lets `cpuid`
// fault (arch_prctl(2), ARCH_SET_CPUID), which SIGSEGV is caught for meanwhile.  Where the kernel
// or the processor does not offer that (no `cpuid_fault` in /proc/cpuinfo), or SIGSEGV is blocked,
// the program starts as always.  Its C library then copies and compares in the simplest ways, so
// this is for programs that do little of that.
#pragma once

namespace hanare::sys {

// From now on the processor is asked, and SIGSEGV is as the program got it.  First of all in
// main(), while there is one thread; nothing where nothing was changed.
void ask_processor_again() noexcept;

}  // namespace hanare::sys
