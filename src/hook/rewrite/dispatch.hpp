// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "hook/rewrite/system_call.hpp"

namespace hanare::hook {

// Before any site is rewritten.  Numbers are below kSystemCallNumbers; `of_buffers` are among them.
void set_handler(SystemCallHandler handler, std::span<const uint32_t> numbers,
                 std::span<const uint32_t> of_buffers) noexcept;

}  // namespace hanare::hook
