// SPDX-License-Identifier: Apache-2.0
//
// The process's row of the page that `hanare run` shares (telemetry/run_page.hpp).  Any thread.
#pragma once

#include "hook/system_calls.hpp"

namespace hanare::run {

// Finds the page, if there is one.  Once, before the others.
void open_report(const hook::RewriteReport& report);

// Writes how things are now, if memory has been adopted.
void report_figures() noexcept;

}  // namespace hanare::run
