// SPDX-License-Identifier: Apache-2.0
//
// rt_sigaction of those who do not come through the wrappers of src/hook.
#pragma once

#include "hook/rewrite/system_call.hpp"
#include "intercept/far_memory.hpp"

namespace hanare::intercept {

// SIGBUS and SIGSEGV stay with Hanare: what is asked for is kept, and told to who asks, as the
// wrappers have it.  Async-signal-safe; compiled for general registers only.
hook::Verdict handle_signal_action(const FarMemory& memory, hook::SystemCall& call);

}  // namespace hanare::intercept
