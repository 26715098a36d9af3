// SPDX-License-Identifier: Apache-2.0
//
// What is set aside in the run's page for forked children that have no row there yet.  Any thread,
// also in faults.
#pragma once

#include <cstdint>

#include "telemetry/run_page.hpp"

namespace hanare::run {

// Of all that live; those that are gone are taken out.
uint64_t bytes_set_aside(telemetry::RunPage& page) noexcept;

// For a child that `parent` is about to have; nullptr: there are too many.
telemetry::RunChild* set_aside(telemetry::RunPage& page, int parent, uint64_t bytes) noexcept;

// Parent or child, whoever is first, writes down whose it is.
void note_owner(telemetry::RunChild& child, int parent, int process_id) noexcept;

// If it is still of that process.
void release(telemetry::RunChild& child, int process_id) noexcept;
// What a program left that this process was before it called exec.
void release_all_of(telemetry::RunPage& page, int process_id) noexcept;

}  // namespace hanare::run
