// SPDX-License-Identifier: Apache-2.0
//
// Random bytes that nobody can guess (getrandom(2)).  Any thread.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.hpp"

namespace hanare::sys {

Result<void> fill_random(std::span<std::byte> memory);

}  // namespace hanare::sys
