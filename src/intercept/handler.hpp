// SPDX-License-Identifier: Apache-2.0
//
// The handler of all system calls that are caught (hook/system_calls.hpp).
#pragma once

#include <cstdint>

#include "hook/rewrite/system_call.hpp"
#include "intercept/arguments.hpp"
#include "intercept/space.hpp"

namespace hanare::intercept {

// Before the first system call is caught.
void set_space(Space& space) noexcept;
// A call that BufferCalls::are(), and for which nothing else is done.
void add_buffer_call(const SystemCallArguments& row) noexcept;

// Whether more is done for it than handle_arguments() does.
bool is_handled_apart(uint32_t number) noexcept;

hook::Verdict handle_system_call(hook::SystemCall& call);
// hook::TransferHandler.
hook::Verdict finish_transfer(hook::SystemCall& call, int64_t result);

}  // namespace hanare::intercept
