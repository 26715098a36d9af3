// SPDX-License-Identifier: Apache-2.0
#include "cli/server_secret.hpp"

#include <unistd.h>

namespace hanare::cli {

Result<std::optional<fabric::Secret>> read_secret(const std::optional<std::string>& file) {
    if (!file) return std::nullopt;
    auto secret = *file == "-" ? fabric::Secret::read_descriptor(STDIN_FILENO)
                               : fabric::Secret::read_file(*file);
    if (secret) return std::move(*secret);
    // Whatever is wrong with it, the user can mend it.
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "--secret-file: %.230s", secret.error().text);
}

}  // namespace hanare::cli
