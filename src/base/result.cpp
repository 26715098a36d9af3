// SPDX-License-Identifier: Apache-2.0
#include "base/result.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace hanare {

std::unexpected<Error> fail(hanare_status status, const char* format, ...) {
    Error error;
    error.status = status;
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(error.text, sizeof error.text, format, arguments);
    va_end(arguments);
    return std::unexpected(error);
}

std::unexpected<Error> fail_errno(hanare_status status, int os_errno, const char* format, ...) {
    Error error;
    error.status = status;
    error.os_errno = os_errno;
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(error.text, sizeof error.text, format, arguments);
    va_end(arguments);
    const size_t used = std::strlen(error.text);
    std::snprintf(error.text + used, sizeof error.text - used, ": %s", text_of_errno(os_errno));
    return std::unexpected(error);
}

const char* text_of_errno(int os_errno) noexcept {
    const char* const text = strerrordesc_np(os_errno);
    return text != nullptr ? text : "unknown error";
}

}  // namespace hanare
