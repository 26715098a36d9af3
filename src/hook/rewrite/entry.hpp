// SPDX-License-Identifier: Apache-2.0
//
// The way from a stub to the dispatcher (entry.cpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "hook/rewrite/system_call.hpp"

namespace hanare::hook {

inline constexpr size_t kSystemCallNumbers = 512;

extern "C" {
// Not 0: system calls with this number go through hanare_hook_dispatch (dispatch.cpp).
extern uint8_t hanare_hook_wanted[kSystemCallNumbers];

void hanare_hook_entry() noexcept;
Verdict hanare_hook_dispatch(SystemCall* call);
}

// Before the first use of with_vector_registers.
void measure_vector_state() noexcept;

}  // namespace hanare::hook
