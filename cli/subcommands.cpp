// SPDX-License-Identifier: Apache-2.0
//
// What hanare-tools has and `hanare` has not (front.cpp).
#include "cli/commands.hpp"

namespace hanare::cli {

int become_responsible(int, char**) { return kExitSuccess; }

void add_other_subcommands(CLI::App& app) {
    add_ps(app);
    add_info(app);
    add_doctor(app);
    add_demo(app);
    add_bench(app);
}

}  // namespace hanare::cli
