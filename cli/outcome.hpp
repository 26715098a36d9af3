// SPDX-License-Identifier: Apache-2.0
//
// What every command of `hanare` and `hanare-tools` begins and ends with.  Single-threaded.
#pragma once

#include <functional>

#include "base/result.hpp"
#include "config/options.hpp"

namespace hanare::cli {

inline constexpr int kExitSuccess = 0;
inline constexpr int kExitCannotRun = 1;         // doctor: something prevents Hanare from running
inline constexpr int kExitBadUsage = 2;          // after one line: flag, value, what is allowed
inline constexpr int kExitInternalFailure = 70;  // after one line: what failed, what to do

// load_options(), its warnings logged and the log level set.
Result<config::Options> load_and_apply(const config::Overrides& overrides);

// Prints "hanare: error: TEXT" and returns the exit status it stands for: kExitBadUsage for values
// that the user can correct, kExitInternalFailure for the rest.
int report(const Error& error);

// For main(): what `command` returns, or one line for an exception or for standard output that did
// not arrive.  `ignores_file_size_signal`: SIGXFSZ, before we ignored it.
int run_command(const std::function<int(bool ignores_file_size_signal)>& command);

}  // namespace hanare::cli
