// SPDX-License-Identifier: Apache-2.0
//
// Keeps a signal for Hanare although the program uses signals as it likes.  libhanare defines
// sigaction, signal, sigprocmask, pthread_sigmask and pthread_create in front of libc's:
//   - the program's disposition of a claimed signal is recorded, not installed, and becomes the
//     chain to which faults that are not Hanare's are passed;
//   - a claimed signal is never blocked in a thread;
//   - threads start with the claimed signals unblocked and, when they have none, with an alternate
//     signal stack, so that tiny thread stacks do not matter.
// Before the first claim every wrapper only calls libc; pthread_create installs its stack always,
// because a claim may come later.  README.md says what is not covered.
#pragma once

#include <csignal>
#include <span>

#include "base/result.hpp"

namespace hanare::hook {

// Returns true when the fault was Hanare's and is dealt with; else what happens is what would have
// happened without Hanare: the program's handler is called with its mask and flags, or the default
// action is taken.  It may have changed info->si_signo to another claimed signal, which the fault
// then is.  Called for faults only, not for signals that were sent.  Runs with all signals blocked;
// must be async-signal-safe; may change errno.
using SignalReceiver = bool (*)(int signal_number, siginfo_t* info, void* context) noexcept;

// Installs `receiver` in front of the program's disposition, for the life of the process; unblocks
// the signal in the calling thread and in handlers installed before.  Once per receiver and signal
// number, of which two may have one: they are asked in this order, until one returns true.  Only
// SIGBUS and SIGSEGV.  Any thread, not from a handler.
Result<void> claim_signal(int signal_number, SignalReceiver receiver);
// Several, for one look at all handlers.
Result<void> claim_signals(std::span<const int> signal_numbers, SignalReceiver receiver);

}  // namespace hanare::hook
