// SPDX-License-Identifier: Apache-2.0
//
// The last error of a thread, and the version.
#include "capi/last_error.hpp"

#include <algorithm>
#include <cstring>

#include "hanare/hanare.h"

namespace hanare::capi {

namespace {
thread_local Error last_error;
thread_local bool has_last_error = false;
}  // namespace

hanare_status report(const Error& error) noexcept {
    last_error = error;
    has_last_error = true;
    return error.status;
}

}  // namespace hanare::capi

extern "C" {

size_t hanare_last_error(char* buffer, size_t bytes) {
    using hanare::capi::has_last_error;
    using hanare::capi::last_error;
    const size_t length = has_last_error ? std::strlen(last_error.text) : 0;
    if (buffer != nullptr && bytes > 0) {
        const size_t copied = std::min(length, bytes - 1);
        std::memcpy(buffer, last_error.text, copied);
        buffer[copied] = '\0';
    }
    return length;
}

const char* hanare_version(void) { return HANARE_VERSION; }

}  // extern "C"
