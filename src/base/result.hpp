// SPDX-License-Identifier: Apache-2.0
//
// Error and Result<T>: how fallible functions outside the fault path report failure.
// An Error is trivially copyable and never allocates; its text is complete (it names the value
// and what is allowed) because the code that detects a failure knows it best.  The fault path
// itself returns bare hanare_status values.
#pragma once

#include <cstddef>
#include <expected>

#include "hanare/status.h"

namespace hanare {

struct Error {
    static constexpr size_t kTextBytes = 256;

    hanare_status status = HANARE_STATUS_INTERNAL;
    int os_errno = 0;  // 0 when no system call is to blame
    char text[kTextBytes] = {};
};

template <typename T>
using Result = std::expected<T, Error>;

// A failed result with a printf-style text.
[[nodiscard, gnu::format(printf, 2, 3)]] std::unexpected<Error> fail(hanare_status status,
                                                                     const char* format, ...);

// The same for a failed system call: appends ": strerror(os_errno)" to the text.
[[nodiscard, gnu::format(printf, 3, 4)]] std::unexpected<Error> fail_errno(hanare_status status,
                                                                           int os_errno,
                                                                           const char* format, ...);

// Not translated, which may allocate.
const char* text_of_errno(int os_errno) noexcept;

}  // namespace hanare

// Evaluates a Result<...>; on failure returns its error from the enclosing function.
#define HANARE_TRY(expression)                                   \
    do {                                                         \
        if (auto hanare_result = (expression); !hanare_result) { \
            return std::unexpected(hanare_result.error());       \
        }                                                        \
    } while (false)

#define HANARE_CONCAT_(a, b) a##b
#define HANARE_CONCAT(a, b) HANARE_CONCAT_(a, b)
#define HANARE_TRY_ASSIGN_(temporary, target, expression)      \
    auto temporary = (expression);                             \
    if (!temporary) return std::unexpected(temporary.error()); \
    target = std::move(*temporary)

// Evaluates a Result<T> and moves its value into `target` (which may be a declaration).
#define HANARE_TRY_ASSIGN(target, expression) \
    HANARE_TRY_ASSIGN_(HANARE_CONCAT(hanare_result_, __LINE__), target, expression)
