// SPDX-License-Identifier: Apache-2.0
//
// The handler of all system calls that are caught (hook/system_calls.hpp).
#pragma once

#include "hook/rewrite/system_call.hpp"
#include "intercept/arguments.hpp"
#include "intercept/space.hpp"

namespace hanare::intercept {

// Before the first system call is caught.
void set_space(Space& space) noexcept;
// A call that BufferCalls::are(), and for which nothing else is done.
void add_buffer_call(const SystemCallArguments& row) noexcept;

hook::Verdict handle_system_call(hook::SystemCall& call);

}  // namespace hanare::intercept
