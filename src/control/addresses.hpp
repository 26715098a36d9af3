// SPDX-License-Identifier: Apache-2.0
//
// Where control sockets are: $XDG_RUNTIME_DIR/hanare/KIND-PID.sock or, where this user has no such
// directory of its own, the nameless address @hanare/UID/KIND-PID.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hanare::control {

// Of the process: what it is to `hanare ps`.
enum class Kind { kProgram, kPools, kRun };
std::string_view kind_name(Kind kind) noexcept;

// Reads the environment; afterwards only what was read counts, whatever the program makes of it.
// Any thread that may use getenv(); else the first use of the others does it.
void note_runtime_directory() noexcept;

// Where this process may listen, the best first.  Makes the directory.
std::vector<std::string> own_addresses(Kind kind);

// Where a process of this user may listen, also one that has been killed.
std::vector<std::string> all_addresses();

// Whether it is a file, which outlives whoever listened there.
inline bool has_file(std::string_view address) noexcept { return !address.starts_with('@'); }

}  // namespace hanare::control
