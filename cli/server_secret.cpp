// SPDX-License-Identifier: Apache-2.0
#include "cli/server_secret.hpp"

#include <unistd.h>

#include <span>

#include "job/wipe.hpp"
#include "sys/pipe.hpp"

namespace hanare::cli {

Result<std::optional<fabric::Secret>> read_secret(const std::optional<std::string>& file) {
    if (!file) return std::nullopt;
    auto secret = *file == "-" ? fabric::Secret::read_descriptor(STDIN_FILENO)
                               : fabric::Secret::read_file(*file);
    if (secret) return std::move(*secret);
    // Whatever is wrong with it, the user can mend it.
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "--secret-file: %.230s", secret.error().text);
}

Result<fabric::Secret> read_secret_line(int timeout_ms) {
    std::string text(kSecretLineBytes, '\0');
    const job::WipeAtEnd wiping(text);
    HANARE_TRY(
        sys::read_exactly(STDIN_FILENO, std::as_writable_bytes(std::span(text)), timeout_ms));
    HANARE_TRY_ASSIGN(const sys::FileDescriptor pipe,
                      sys::pipe_holding(std::as_bytes(std::span(text))));
    return fabric::Secret::read_descriptor(pipe.number());
}

std::string secret_line(const fabric::Secret& secret) {
    std::string digits = secret.text();
    const job::WipeAtEnd wiping(digits);
    std::string line;
    line.reserve(kSecretLineBytes);  // no copies of a part are left behind
    line.append(digits).push_back('\n');
    return line;
}

}  // namespace hanare::cli
