// SPDX-License-Identifier: Apache-2.0
//
// Who has which row of the run's page, and who has none any more.  Any thread, also in faults.
#pragma once

#include "telemetry/run_page.hpp"

namespace hanare::run {

// As others may know it.  Asks /proc the first time.
telemetry::RunProcess this_process() noexcept;
// In the child of a fork, which may be in another namespace and have the same number there.
void forget_this_process() noexcept;

// Nobody else's, until its state is kEnded; nullptr: there are too many.
telemetry::RunRow* take_row(telemetry::RunPage& page) noexcept;
// Others may do it at the same time.
void end_row(telemetry::RunPage& page, telemetry::RunRow& row) noexcept;
// What another program left, which this process was before it called exec.
void end_rows_of(telemetry::RunPage& page, telemetry::RunProcess process) noexcept;
// Of processes that have ended, and whose number means something to `asker`, once `hanare run` has
// ended, too.
void end_rows_of_dead(telemetry::RunPage& page, telemetry::RunProcess asker) noexcept;

}  // namespace hanare::run
