// SPDX-License-Identifier: Apache-2.0
//
// What a program finds on its stack when it begins: arguments, environment and the auxiliary vector
// (System V ABI for x86-64, section 3.4.1), as the kernel's exec writes them.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "space/image.hpp"
#include "task/start_of_program.hpp"

namespace hanare::space {

using task::StartOfProgram;

// Fills the end of `stack`.  Returns the stack pointer to begin with; LIMIT where a quarter of the
// stack is not enough, as for exec.  `loader` has no entry where the program needs none.
Result<uint64_t> write_start(std::span<std::byte> stack, const StartOfProgram& start,
                             const Image& program, const Image& loader);

}  // namespace hanare::space
