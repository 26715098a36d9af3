// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace hanare::task {

struct StartOfProgram {
    std::string path;                      // of the program
    std::vector<std::string> arguments;    // the first is its name
    std::vector<std::string> environment;  // NAME=VALUE
};

}  // namespace hanare::task
