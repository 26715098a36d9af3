// SPDX-License-Identifier: Apache-2.0
//
// What is set aside in the run's page for forked children that have no row there yet.  Any thread,
// also in faults.
#pragma once

#include <cstdint>

#include "telemetry/run_page.hpp"

namespace hanare::run {

// Of all but one, which may be nullptr.
uint64_t bytes_set_aside(const telemetry::RunPage& page,
                         const telemetry::RunChild* but_for) noexcept;

// For a child that `parent` is about to have; nullptr: there are too many.
telemetry::RunChild* set_aside(telemetry::RunPage& page, telemetry::RunProcess parent,
                               uint64_t bytes) noexcept;

// By the parent, unless the child has released it already.
void note_owner(telemetry::RunChild& child, telemetry::RunProcess parent, int process_id) noexcept;

void release(telemetry::RunChild& child) noexcept;
// What a program left that this process was before it called exec.
void release_all_of(telemetry::RunPage& page, telemetry::RunProcess process) noexcept;

}  // namespace hanare::run
