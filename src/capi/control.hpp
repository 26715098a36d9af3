// SPDX-License-Identifier: Apache-2.0
//
// The control socket (src/control) of a process that opens pools by the C API: made with the first
// pool, served by the keeper of one of them, gone with the last.  Any thread.
#pragma once

#include <string>

#include "base/intrusive_list.hpp"
#include "hanare/stats.h"
#include "pager/pool.hpp"

namespace hanare::capi {

// What is told of a pool.  The owner's, as long as it is added.
struct ControlledPool : ListLink {
    pager::Pool* pool = nullptr;  // nullptr: not added
    int process_id = 0;           // where it was
    std::string store;
    hanare_counters known = {};  // when they could be had last
};

// A socket that cannot be had is a line of the log, and nobody is answered.
void add_controlled(ControlledPool& entry, pager::Pool& pool);
// Before the pool ends.
void remove_controlled(ControlledPool& entry) noexcept;

}  // namespace hanare::capi
