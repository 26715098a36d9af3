// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <span>

#include "hook/signals.hpp"
#include "pager/fault/handler.hpp"

namespace hanare::pager {

Result<void> claim_faults(int fault_signal) {
    static constexpr int kBoth[] = {SIGBUS, SIGSEGV};
    const std::span<const int> wanted(kBoth, fault_signal == SIGBUS ? 1 : 2);
    static const size_t claimed_at_first = wanted.size();
    static const Result<void> claimed = hook::claim_signals(wanted, receive_fault);
    if (!claimed || wanted.size() <= claimed_at_first) return claimed;
    static const Result<void> claimed_too = hook::claim_signal(SIGSEGV, receive_fault);
    return claimed_too;
}

}  // namespace hanare::pager
