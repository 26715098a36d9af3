// SPDX-License-Identifier: Apache-2.0
//
// The receiver of SIGBUS and SIGSEGV: where every access to absent far memory arrives.
#pragma once

#include <atomic>
#include <csignal>
#include <cstddef>

#include "base/result.hpp"

namespace hanare::pager {

// Serves faults on far memory; false for everything else, and for a fault that cannot be served,
// which then is a SIGBUS whatever it was.  A hook::SignalReceiver.
bool receive_fault(int signal_number, siginfo_t* info, void* context) noexcept;

// Claims SIGBUS for the pager, and `fault_signal` if it is another; the first call for a signal
// does the work.  Normal context (claim.cpp).
Result<void> claim_faults(int fault_signal);

// If that is far memory which was adopted: its block never leaves again.  Any thread,
// async-signal-safe.
void keep_stack_at(const std::byte* stack_pointer) noexcept;

// True while the calling thread serves a fault.  Tests use it to trap what must not happen there.
bool in_fault_handler() noexcept;

// The calling thread serves a fault as long as one lives.
class FaultScope {
public:
    FaultScope() noexcept;
    ~FaultScope();
    FaultScope(const FaultScope&) = delete;
    FaultScope& operator=(const FaultScope&) = delete;
};

// Called in the child of a fork(): from now on a fault there is answered with one line.
void mark_forked_child() noexcept;
bool is_forked_child() noexcept;

}  // namespace hanare::pager
