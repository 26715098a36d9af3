// SPDX-License-Identifier: Apache-2.0
//
// hanare_counters as text for people and as JSON for programs.  The table of counters is
// HANARE_COUNTER_MAP and HANARE_GAUGE_MAP in hanare/stats.h.  Fields beyond struct_size are left
// out.  Any thread.
#pragma once

#include <string>

#include "hanare/stats.h"

namespace hanare::telemetry {

// One line per field: name, value (sizes in units as well), what it counts.
std::string counters_text(const hanare_counters& counters);

// One object, {"read_faults": 12, ...}, in the order of the table.
std::string counters_json(const hanare_counters& counters);

}  // namespace hanare::telemetry
