// SPDX-License-Identifier: Apache-2.0
#include "bench/compared/networks.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "sys/network_namespace.hpp"

namespace hanare::bench {

Result<void> enter_target_network() {
    const char* const process = std::getenv(kTargetNetworkVariable);
    if (process == nullptr) return {};
    pid_t number = 0;
    const char* const end = process + std::strlen(process);
    if (std::from_chars(process, end, number).ptr != end || number <= 0) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "%s: no process \"%.50s\"",
                    kTargetNetworkVariable, process);
    }
    HANARE_TRY(sys::enter_network_of(number));
    if (const char* const device = std::getenv(kTargetDeviceVariable)) {
        setenv("UCX_NET_DEVICES", device, 1);
        HANARE_TRY(sys::show_own_network());  // where UCX looks for it
    }
    return {};
}

}  // namespace hanare::bench
