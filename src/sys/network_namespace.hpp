// SPDX-License-Identifier: Apache-2.0
//
// A network of this process's own, as containers have it: what is made there (interfaces,
// addresses) is seen by nobody else and is gone when the last process in it has ended.  For a
// process without other threads.
#pragma once

#include <sys/types.h>

#include <string>

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

// Until the interface, which is up, also runs: the kernel notes up to a second later that there is
// somebody at its other end.  TIMEOUT; BUSY: a signal came.
Result<void> await_running_link(const std::string& name, int timeout_ms);

// From now on /sys/class/net shows the network that this process is in: it shows whoever mounts
// /sys the own one, and so this is done, in a mount namespace of its own.  PERMISSION.
Result<void> show_own_network();

}  // namespace hanare::sys
