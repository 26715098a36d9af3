// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "hook/rewrite/system_call.hpp"

namespace hanare::hook {

// Before any site is rewritten.  Numbers are below kSystemCallNumbers; those of `addressed` are
// among them, and those of `transfers` among these.
void set_handler(SystemCallHandler handler, std::span<const uint32_t> numbers,
                 std::span<const AddressedCall> addressed, const Transfers& transfers) noexcept;

// As the program made it, or as the handler answers it; its number becomes the result.
void make_system_call(SystemCall& call);

// An mmap of what may be a module.
bool maps_code_of_a_file(const SystemCall& call) noexcept;

}  // namespace hanare::hook
