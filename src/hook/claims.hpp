// SPDX-License-Identifier: Apache-2.0
//
// The signals whose kernel disposition is ours, as the wrappers see them.  Every claim keeps two:
// the claimed signal and its stand-in.  Any thread, async-signal-safe.
#pragma once

#include <csignal>

#include "hook/disposition.hpp"

namespace hanare::hook {

// The program's disposition of a kept signal; null when the kernel holds it, as for all others.
DispositionCell* find_kept_disposition(int signal_number) noexcept;

// Its change; what it was before.  A child of vfork changes its own before it execs, and the cell
// is its parent's: there it stays as it is.
Disposition exchange_kept(DispositionCell& kept, const Disposition& wanted) noexcept;

// Whether that is what is installed for them, as the kernel has it.
bool is_own_handler(const void* handler) noexcept;

// After the program changed a disposition past the claim check: puts our handler back in front.
void reinstall_if_kept(int signal_number) noexcept;

}  // namespace hanare::hook
