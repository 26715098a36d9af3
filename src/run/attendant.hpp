// SPDX-License-Identifier: Apache-2.0
//
// The attendant: a thread that is made before the program begins, since none can be made in the
// place of a system call, and sleeps until memory is adopted.  It is the pool's keeper then, and
// from time to time tells `hanare run` how things are (telemetry/run_page.hpp).  It runs with every
// signal blocked and never touches far memory.
#pragma once

#include <cstdint>

#include "hook/system_calls.hpp"

namespace hanare::run {

// `local_bytes`: the budget of all processes together.  Where no thread can be had, far memory does
// without one, as in the child of a fork; a line says so.
void start_attendant(const hook::RewriteReport& report, uint64_t local_bytes);

}  // namespace hanare::run
