// SPDX-License-Identifier: Apache-2.0
#include "base/assert.hpp"

#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

namespace hanare {

namespace {

void append(char*& end, const char* limit, const char* text) noexcept {
    while (*text != '\0' && end < limit) *end++ = *text++;
}

}  // namespace

void assert_failed(const char* expression, const char* file, int line) noexcept {
    char text[256];
    char* end = text;
    const char* const limit = text + sizeof text - 1;
    append(end, limit, "hanare: internal error: ");
    append(end, limit, expression);
    append(end, limit, " does not hold at ");
    append(end, limit, file);
    append(end, limit, ":");
    char digits[12];
    char* digit = digits + sizeof digits - 1;
    *digit = '\0';
    do {
        *--digit = static_cast<char>('0' + line % 10);
        line /= 10;
    } while (line > 0);
    append(end, limit, digit);
    *end++ = '\n';
    // Not write(3), which is a cancellation point.
    syscall(SYS_write, STDERR_FILENO, text, static_cast<size_t>(end - text));
    __builtin_trap();
}

}  // namespace hanare
