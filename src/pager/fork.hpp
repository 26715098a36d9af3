// SPDX-License-Identifier: Apache-2.0
//
// fork(): far memory stays with the parent.  In the child every region is replaced by memory whose
// every access raises SIGBUS, so that it is never read as zeros, and descriptors that act on the
// parent are closed.
#pragma once

#include "base/result.hpp"
#include "store/store.hpp"

namespace hanare::pager {

// Registers with pthread_atfork; the first call does the work.
Result<void> watch_forks();

// A child that is forked while no pool is open may use Hanare itself.  Between the two calls the
// store stays.
void note_pool_opened(store::Store& store) noexcept;
void note_pool_closed(store::Store& store) noexcept;

}  // namespace hanare::pager
