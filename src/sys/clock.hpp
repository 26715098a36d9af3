// SPDX-License-Identifier: Apache-2.0
//
// Time that only goes forward.  Async-signal-safe, without a system call.
#pragma once

#include <cstdint>

namespace hanare::sys {

uint64_t now_ns() noexcept;

}  // namespace hanare::sys
