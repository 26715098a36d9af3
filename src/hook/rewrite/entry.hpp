// SPDX-License-Identifier: Apache-2.0
//
// The way from a stub to the dispatcher (entry.cpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "hook/rewrite/system_call.hpp"

namespace hanare::hook {

inline constexpr size_t kSystemCallNumbers = 512;
// The low 16 bits of a number are looked up, without a comparison that would change the flags.
inline constexpr size_t kWantedBytes = 0x10000;

extern "C" {
// Not 0: system calls with these low bits go through hanare_hook_dispatch (dispatch.cpp).
extern uint8_t hanare_hook_wanted[kWantedBytes];

void hanare_hook_entry() noexcept;
Verdict hanare_hook_dispatch(SystemCall* call);
}

}  // namespace hanare::hook
