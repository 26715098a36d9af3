// SPDX-License-Identifier: Apache-2.0
//
// A network of this process's own, as containers have it: what is made there (interfaces,
// addresses) is seen by nobody else and is gone when the last process in it has ended.  For a
// process without other threads.
#pragma once

#include <sys/types.h>

#include "base/result.hpp"

namespace hanare::sys {

// From now on this process, and what it starts, is in a new network that has nothing but a loopback
// interface, which is down.  Who may not make one otherwise becomes root of a new user namespace,
// with none but its own user in it.  PERMISSION, with what to change, where neither is allowed; the
// process may be half-way then, and had better end.
Result<void> enter_own_network();

// From now on it is in the network of another process of its user, and in the user namespace that
// goes with it.  PERMISSION; NOT_FOUND: that process has ended.
Result<void> enter_network_of(pid_t process);

}  // namespace hanare::sys
