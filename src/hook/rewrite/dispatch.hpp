// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "hook/rewrite/system_call.hpp"

namespace hanare::hook {

// Before any site is rewritten.  Numbers are below kSystemCallNumbers.
void set_handler(SystemCallHandler handler, std::span<const uint32_t> numbers) noexcept;

}  // namespace hanare::hook
