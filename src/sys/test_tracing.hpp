// SPDX-License-Identifier: Apache-2.0
//
// Whether the system lets a child trace this process, found by trying; for tests of what needs it.
#pragma once

#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hanare::sys::testing {

inline bool may_be_traced() {
    int ends[2];
    if (pipe(ends) != 0) return false;
    const pid_t child = fork();
    if (child == 0) {
        char byte = 0;
        const bool told = read(ends[0], &byte, 1) == 1;
        _exit(told && ptrace(PTRACE_SEIZE, getppid(), nullptr, nullptr) == 0 ? 0 : 1);
    }
    prctl(PR_SET_PTRACER, child);
    const bool told = write(ends[1], "x", 1) == 1;
    int status = 0;
    const bool ended = waitpid(child, &status, 0) == child;
    prctl(PR_SET_PTRACER, 0);
    close(ends[0]);
    close(ends[1]);
    return told && ended && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace hanare::sys::testing
