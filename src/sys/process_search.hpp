// SPDX-License-Identifier: Apache-2.0
//
// Processes of other namespaces, which have other numbers there.  Any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace hanare::sys {

// The number here of what is `process` in that namespace (process_namespace()), if that is one
// below the caller's: looks at all processes.  0: there is none; nullopt: that cannot be told.
std::optional<pid_t> find_process(uint64_t name_space, pid_t process);

}  // namespace hanare::sys
