// SPDX-License-Identifier: Apache-2.0
//
// Commands for the shell of another machine, which ssh or what stands in for it takes there:
// COMMAND HOST TEXT.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace hanare::cli {

// Of a text with blanks between them, as `--ssh` and `--rsh` have it.
std::vector<std::string> words_of(const std::string& text);

// One command line of these words, whatever is in them, that takes the shell's place.
std::string shell_command(std::span<const std::string> words);

// Of this program, which is likely to be in the same place over there.
Result<std::string> own_path();

}  // namespace hanare::cli
