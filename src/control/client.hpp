// SPDX-License-Identifier: Apache-2.0
//
// Asks a process at its control socket.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace hanare::control {

// The answer.  When nobody listens there any more, its file is removed and the error has `os_errno`
// ECONNREFUSED; EAGAIN when too many wait there; 0 when it does not answer, or with an error.
inline constexpr int kAnswerTimeout_ms = 2000;
Result<std::string> ask(const std::string& address, std::string_view request,
                        int timeout_ms = kAnswerTimeout_ms);

}  // namespace hanare::control
