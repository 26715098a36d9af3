// SPDX-License-Identifier: Apache-2.0
//
// Help with misspelt names.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hanare::config {

// The known name with the smallest edit distance, ignoring case; empty when none is near (more than
// a third of the letters differ).
std::string_view nearest(std::string_view name, std::span<const std::string_view> known);

// "; did you mean 'NAME'?", or nothing.
std::string suggestion(std::string_view name, std::span<const std::string_view> known);

// A value for a message: in quotes, at most 60 bytes of it, control characters replaced.
std::string in_quotes(std::string_view text);

}  // namespace hanare::config
