// SPDX-License-Identifier: Apache-2.0
//
// The steps of loading options, for load_options.cpp and options.cpp: the library that `hanare run`
// puts into programs needs no file, and is smaller without what reads one.
#pragma once

#include "config/options.hpp"

namespace hanare::config {

inline constexpr std::string_view kEnvironmentPrefix = "HANARE_";
inline constexpr std::string_view kFileVariable = "HANARE_CONFIG";

Result<Options> default_options();

// Checks a value and takes it.
Result<void> take(Options& options, const Override& value);
Result<void> take_environment(Options& options);

// The variables that mean something.
std::vector<std::string_view> known_variables();

}  // namespace hanare::config
