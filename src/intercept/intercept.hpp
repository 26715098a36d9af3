// SPDX-License-Identifier: Apache-2.0
//
// Adopts the memory of the program that this library was loaded into: catches its system calls
// (hook/system_calls.hpp), answers those that map memory (space.hpp), and makes all others work on
// far memory (far_call.hpp).
#pragma once

#include "base/result.hpp"
#include "hook/system_calls.hpp"
#include "intercept/space.hpp"

namespace hanare::intercept {

// Once per process, while it has one thread.  From then on the space lives as long as the process.
Result<void> begin(const SpaceOptions& options);

// nullptr before begin().
Space* space() noexcept;

}  // namespace hanare::intercept
