// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace hanare::cli {

// A table for people, or {"spaces": [{root, resident_bytes, page_table_bytes, tasks: [{process_id,
// program}]}]}, of the spaces that this user may look at.
void print_spaces(bool as_json);

}  // namespace hanare::cli
