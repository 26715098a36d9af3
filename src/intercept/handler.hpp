// SPDX-License-Identifier: Apache-2.0
//
// The handler of all system calls that are caught (hook/system_calls.hpp).
#pragma once

#include <cstddef>

#include "hook/rewrite/system_call.hpp"
#include "intercept/space.hpp"

namespace hanare::intercept {

// Before the first system call is caught.  `bytes_at_a_time`: of far memory that one call holds.
void set_space(Space& space, size_t bytes_at_a_time) noexcept;

hook::Verdict handle_system_call(hook::SystemCall& call);
// Of a call that does nothing but read and write at its arguments.
hook::Verdict handle_arguments(hook::SystemCall& call);

}  // namespace hanare::intercept
