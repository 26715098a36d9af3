// SPDX-License-Identifier: Apache-2.0
//
// Keeps a signal for Hanare although the program uses signals as it likes.  libhanare defines
// sigaction, signal, sigprocmask, pthread_sigmask and pthread_create in front of libc's:
//   - the program's disposition of a claimed signal is recorded, not installed, and becomes the
//     chain to which faults that are not Hanare's are passed;
//   - a claimed signal is never blocked in a thread;
//   - threads start with the claimed signals unblocked and, when they have none, with an alternate
//     signal stack, so that tiny thread stacks do not matter.
// Before the first claim every wrapper only calls libc.
#pragma once

#include <csignal>

#include "base/result.hpp"

namespace hanare::hook {

// Returns true when the signal was Hanare's and is dealt with.  Runs with all signals blocked; must
// be async-signal-safe.
using SignalReceiver = bool (*)(int signal_number, siginfo_t* info, void* context) noexcept;

// Installs `receiver` in front of the program's disposition, for the life of the process; unblocks
// the signal in the calling thread.  Once per signal number.
Result<void> claim_signal(int signal_number, SignalReceiver receiver);

// Does what would have happened without Hanare: calls the program's handler with its mask and
// flags, or takes the default action (which ends the process with this signal).
void chain_signal(int signal_number, siginfo_t* info, void* context) noexcept;

}  // namespace hanare::hook
