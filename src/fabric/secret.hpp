// SPDX-License-Identifier: Apache-2.0
//
// Secret: what the processes of a job share and nobody else knows, by which they recognise each
// other.  It comes by a descriptor or a file, never by an argument, which everybody can see.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace hanare::fabric {

class Secret {
public:
    static constexpr size_t kBytes = 32;

    static Result<Secret> make();
    // A file holds the bytes, or twice as many hexadecimal digits, with or without a line's end.
    // NOT_FOUND; PERMISSION: it is not this user's, or others may read or change it;
    // INVALID_ARGUMENT: it holds something else.
    static Result<Secret> read_file(const std::string& path);
    // The same of a descriptor that was inherited, up to its end, whoever may read what is behind
    // it.
    static Result<Secret> read_descriptor(int number);

    ~Secret();
    Secret(const Secret&) = default;
    Secret& operator=(const Secret&) = default;

    std::span<const std::byte, kBytes> bytes() const noexcept { return bytes_; }
    // In hexadecimal digits, as a file may hold it.
    std::string text() const;

private:
    Secret() = default;
    static Result<Secret> parse(const char* what, std::string_view text);

    std::array<std::byte, kBytes> bytes_{};
};

}  // namespace hanare::fabric
