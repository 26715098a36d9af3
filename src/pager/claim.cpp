// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include "hook/signals.hpp"
#include "pager/fault/handler.hpp"

namespace hanare::pager {

Result<void> claim_faults() {
    static const Result<void> claimed = hook::claim_signal(SIGBUS, receive_sigbus);
    return claimed;
}

}  // namespace hanare::pager
