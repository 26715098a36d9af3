// SPDX-License-Identifier: Apache-2.0
//
// fork(): far memory stays with the parent.  In the child every region is replaced by memory whose
// every access raises SIGBUS, so that it is never read as zeros, and descriptors that act on the
// parent are closed.
#pragma once

#include "base/result.hpp"

namespace hanare::pager {

// Registers with pthread_atfork; the first call does the work.
Result<void> watch_forks();

// A child that is forked while no pool is open may use Hanare itself.
void note_pool_opened() noexcept;
void note_pool_closed() noexcept;

}  // namespace hanare::pager
