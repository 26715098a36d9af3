// SPDX-License-Identifier: Apache-2.0
#include "remote/client_name.hpp"

#include "lease/messages.hpp"
#include "sys/host_address.hpp"
#include "sys/thread_state.hpp"

namespace hanare::remote {

std::string client_name() {
    std::string name = std::string(sys::thread_name().data()) + "@" + sys::host_name();
    for (char& each : name) {
        if (each < ' ' || each > '~') each = '?';
    }
    return name.substr(0, lease::kClientNameBytes - 1);
}

}  // namespace hanare::remote
