// SPDX-License-Identifier: Apache-2.0
//
// The attendant: a thread of Hanare's own in the program.  It is the pool's keeper, and from time
// to time tells `hanare run` how things are (telemetry/run_page.hpp).  It runs with every signal
// blocked and never touches far memory.
//
// There is none before one is of use: when half of the budget is taken, when other processes share
// it, when the program forks, when much memory is mapped that is not adopted.  Until then threads
// do themselves what has to be done, as in the child of a fork.  It is started in the place of a
// system call or in a fault, so libc cannot start it (sys/bare_thread.hpp).
#pragma once

#include <cstdint>

namespace hanare::run {

// While the program has one thread.  `local_bytes`: the budget of all processes together.
void prepare_attendant(uint64_t local_bytes);

}  // namespace hanare::run
