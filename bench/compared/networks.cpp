// SPDX-License-Identifier: Apache-2.0
#include "bench/compared/networks.hpp"

#include <cstdlib>

#include "sys/network_namespace.hpp"

namespace hanare::bench {

Result<void> enter_target_network() {
    const char* const process = std::getenv(kTargetNetworkVariable);
    if (process == nullptr) return {};
    HANARE_TRY(sys::enter_network_of(static_cast<pid_t>(std::strtol(process, nullptr, 10))));
    if (const char* const device = std::getenv(kTargetDeviceVariable)) {
        setenv("UCX_NET_DEVICES", device, 1);
    }
    return {};
}

}  // namespace hanare::bench
