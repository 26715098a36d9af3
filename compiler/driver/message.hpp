// SPDX-License-Identifier: Apache-2.0
//
// What the drivers say about themselves.  One thread.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace hanare::driver {

using Words = std::vector<std::string>;

// The status of a driver that refuses or fails, as that of compilers.
inline constexpr int kFailed = 1;

// By which name it was called: hanare-cc, dlmc.
void set_name(std::string_view name);
const std::string& name();

// "NAME: TEXT" on standard error.
void say(std::string_view text);
// The same, and kFailed.
[[nodiscard]] int fail(std::string_view text);

// A command as one would type it into a shell, on standard error.
void show(const Words& command);

}  // namespace hanare::driver
