// SPDX-License-Identifier: Apache-2.0
//
// `hanare demo sort`, the second part of the demo: an unmodified program.
#pragma once

#include "cli/commands.hpp"

namespace hanare::cli {

void add_demo_sort(CLI::App& demo);

}  // namespace hanare::cli
