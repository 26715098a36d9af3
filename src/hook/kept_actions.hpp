// SPDX-License-Identifier: Apache-2.0
//
// rt_sigaction(2) of those who do not come through the wrappers: whoever was linked before
// libhanare was loaded (an interpreter, of which an extension needs it).  Any thread,
// async-signal-safe.
#pragma once

#include "hook/rewrite/system_call.hpp"

namespace hanare::hook {

// Changes and tells the program's disposition of a claimed signal, as the wrappers do, and finishes
// the call; false for any other (its addresses are taken for good, as libc's are), which the kernel
// has to make.
bool change_kept_action(SystemCall& call) noexcept;

}  // namespace hanare::hook
