// SPDX-License-Identifier: Apache-2.0
//
// The calling thread's last error, which hanare_last_error() returns.
#pragma once

#include "base/result.hpp"

namespace hanare::capi {

// Remembers `error` for the calling thread and returns its status.
hanare_status report(const Error& error) noexcept;

}  // namespace hanare::capi
