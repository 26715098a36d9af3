// SPDX-License-Identifier: Apache-2.0
//
// What claim_signal needs from the files that define libc's names.  Referring to them also makes a
// static linker take those files.
#pragma once

#include <csignal>

#include "hook/signal_mask.hpp"

namespace hanare::hook {

// Look up libc's functions.  Not async-signal-safe.
void resolve_action_functions() noexcept;
void resolve_mask_functions() noexcept;
void resolve_thread_functions() noexcept;

// libc's sigaction.
int next_sigaction(int signal_number, const struct sigaction* action,
                   struct sigaction* old) noexcept;

// The calling thread's kernel mask.
SignalBits thread_mask() noexcept;
void set_thread_mask(SignalBits kernel_mask) noexcept;

}  // namespace hanare::hook
