// SPDX-License-Identifier: Apache-2.0
//
// Compiled for general registers only.
#include "intercept/forks.hpp"

#include <sched.h>
#include <sys/syscall.h>

#include "intercept/handler.hpp"

namespace hanare::intercept {

hook::Verdict handle_fork(hook::SystemCall& call) {
    static_cast<void>(call);
    return hook::Verdict::kNative;
}

}  // namespace hanare::intercept
