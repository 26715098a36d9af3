// SPDX-License-Identifier: Apache-2.0
//
// Signal system calls past every wrapper, ours and a sanitizer's.  All are async-signal-safe.
#pragma once

#include <csignal>
#include <cstdint>

namespace hanare::hook {

// As rt_sigaction(2) has it.
struct KernelSigaction {
    void* handler;
    unsigned long flags;
    void* restorer;
    uint64_t mask;
};

// Ends the process with `info`'s signal, now or when the handler that calls this returns: sets the
// default action and queues the signal to this thread again, whose context the core dump shows.
// For a fault the repeated instruction does the same should the queue refuse.
void take_default_action(const siginfo_t& info) noexcept;

// Queues a sent signal again under the number of its stand-in, to the thread or the process as it
// was sent; where it waits until the program unblocks the signal.
void hold_back(const siginfo_t& info, int stand_in) noexcept;

// Undoes hold_back: true when `info` is a signal that was held back, now as it was sent.
bool release_held_back(siginfo_t* info, int signal_number) noexcept;

}  // namespace hanare::hook
