// SPDX-License-Identifier: Apache-2.0
//
// What entry points check before anything else: pointers, and structs that grow with the library.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/result.hpp"

namespace hanare::capi {

inline Error null_argument(const char* function, const char* argument) {
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "%s: %s must not be NULL", function, argument)
        .error();
}

// Copies what the caller knows of an option struct; the rest stays zero, which means default.
template <typename T>
Result<T> copy_options(const char* function, const T* given) {
    T options = {};
    options.struct_size = sizeof options;
    if (given == nullptr) return options;
    if (given->struct_size < sizeof given->struct_size || given->struct_size > 4096) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "%s: options->struct_size is %zu; set it to sizeof the struct", function,
                    given->struct_size);
    }
    std::memcpy(&options, given, std::min(given->struct_size, sizeof options));
    return options;
}

}  // namespace hanare::capi
