// SPDX-License-Identifier: Apache-2.0
//
// HANARE_ASSERT checks an invariant in every build; it is never used for input.  A failed assert
// writes one line to standard error without allocating and traps, so it is safe in a fault handler.
#pragma once

namespace hanare {
[[noreturn, gnu::cold]] void assert_failed(const char* expression, const char* file,
                                           int line) noexcept;
}

#define HANARE_ASSERT(expression)  \
    (static_cast<bool>(expression) \
         ? static_cast<void>(0)    \
         : ::hanare::assert_failed(#expression, __FILE_NAME__, __LINE__))
