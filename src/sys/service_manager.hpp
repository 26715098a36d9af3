// SPDX-License-Identifier: Apache-2.0
//
// What a service tells whoever has started it and waits for that, systemd for instance
// (sd_notify(3)): a datagram to the socket that $NOTIFY_SOCKET names.  One thread; the environment
// must not change meanwhile.
#pragma once

#include <string_view>

#include "base/result.hpp"

namespace hanare::sys {

// "READY=1", "STOPPING=1", "STATUS=text".  Where nobody wants to know, nothing happens.  SYSTEM.
Result<void> tell_service_manager(std::string_view assignments);

}  // namespace hanare::sys
