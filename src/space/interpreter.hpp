// SPDX-License-Identifier: Apache-2.0
//
// Texts that name the program that reads them, as exec understands them.
#pragma once

#include "base/result.hpp"
#include "space/start_stack.hpp"

namespace hanare::space {

// What begins instead of a text with "#!": its interpreter, with the text's path among the
// arguments. All else as it is.  NOT_SUPPORTED for a program that would get privileges by its file.
Result<StartOfProgram> with_interpreter(StartOfProgram start);

}  // namespace hanare::space
