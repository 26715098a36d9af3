// SPDX-License-Identifier: Apache-2.0
#include "cli/python.hpp"

#include <cstdlib>

#include "sys/program_file.hpp"

namespace hanare::cli {

Result<std::string> find_python(const std::optional<std::string>& named) {
    if (named) return sys::find_program(*named);
    const char* const ours = std::getenv("HANARE_PYTHON");
    return sys::find_program(ours != nullptr && *ours != '\0' ? ours : "python3");
}

}  // namespace hanare::cli
