// SPDX-License-Identifier: Apache-2.0
//
// The system calls of tasks that the space answers: those that concern the memory of the process,
// which is now that of many, and those that ask what program this is.
#pragma once

#include <cstdint>

namespace hanare::space {

// Whether sites with this number are rewritten.
bool is_answered(uint32_t number) noexcept;

// Before any code is rewritten.
void begin_answers() noexcept;

}  // namespace hanare::space
