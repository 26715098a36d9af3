// SPDX-License-Identifier: Apache-2.0
//
// Other programs: a compiler that is started, watched and waited for.  One thread.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "message.hpp"

namespace hanare::driver {

// Where the shell would find it; empty: nowhere.
std::string find_program(const std::string& word);

// This process becomes the command.  Returns kFailed, having said why, when that cannot be.
int become(const Words& command);

enum class Errors {
    kShown,
    kHidden,
    kWatched,  // shown, and what the drivers know about them is said in the end
};

// Runs a command; signals that should end this process go to it.  Its wait status; nullopt, having
// said why, when there is none.
std::optional<int> run(const Words& command, Errors errors = Errors::kShown);

// Ends as the command did: this process's exit status, or death by the same signal.
int end_as(int wait_status);

// Whether the command succeeds, and what it wrote.
std::optional<std::string> output_of(const Words& command);

// Whether a signal came that should have ended this process.
bool was_interrupted();

}  // namespace hanare::driver
