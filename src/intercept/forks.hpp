// SPDX-License-Identifier: Apache-2.0
//
// fork and clone.  A child with memory of its own gets a copy of all far memory, copy-on-write as
// the kernel's: present pages by the kernel, absent blocks by sharing their slots in the store
// (store/slot_table.hpp).
#pragma once

#include "hook/rewrite/system_call.hpp"

namespace hanare::intercept {

hook::Verdict handle_fork(hook::SystemCall& call);

}  // namespace hanare::intercept
