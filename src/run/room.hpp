// SPDX-License-Identifier: Apache-2.0
//
// How a process that has no attendant, such as the child of a fork, gets room for its part of the
// common budget: it asks the attendant of the process that it was forked from, which makes room and
// tells so in its row of the page at once, and not when it would have looked next.
#pragma once

#include <cstdint>

#include "telemetry/run_page.hpp"

namespace hanare::run {

// By the attendant: a descriptor that is readable while somebody asks, or -1.  Children inherit it.
int offer_room() noexcept;
void serve_room() noexcept;

// Returns when the others have made room for `sharers` in all, or it is in vain to wait for it:
// they are stopped, or cannot give up more.  `own` is left out.  Async-signal-safe.
void wait_for_room(const telemetry::RunPage& page, const telemetry::RunRow* own,
                   uint32_t sharers) noexcept;

}  // namespace hanare::run
