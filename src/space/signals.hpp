// SPDX-License-Identifier: Apache-2.0
//
// Signals to the process that stands for tasks: the root of `hanare space run`, or a proxy.
#pragma once

#include <unistd.h>

#include <csignal>

namespace hanare::space {

// What the terminal sends goes to the whole group of processes; but a hangup to the leader of the
// session only.  A timer and the limit of processor time are the process's own.
inline bool goes_to_all_by_itself(int number, int code) noexcept {
    if (code != SI_KERNEL || number == SIGALRM || number == SIGXCPU) return false;
    return number != SIGHUP || getsid(0) != getpid();
}

}  // namespace hanare::space
