// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include "hook/signals.hpp"
#include "pager/fault/handler.hpp"

namespace hanare::pager {

Result<void> claim_faults(int fault_signal) {
    static const Result<void> claimed = hook::claim_signal(SIGBUS, receive_fault);
    HANARE_TRY(claimed);
    if (fault_signal == SIGBUS) return {};
    static const Result<void> claimed_too = hook::claim_signal(SIGSEGV, receive_fault);
    return claimed_too;
}

}  // namespace hanare::pager
