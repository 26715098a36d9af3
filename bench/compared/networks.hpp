// SPDX-License-Identifier: Apache-2.0
//
// Where the two processes of a compared system are: over loopback, or each in a network of its own
// that was made before (cli/fabric_network.hpp).
#pragma once

#include "base/result.hpp"

namespace hanare::bench {

// The process in whose network the target is to be; not set: all are in the same one.
inline constexpr const char* kTargetNetworkVariable = "HANARE_BENCH_TARGET_NETWORK";
// UCX's device there; not set: it is not used.
inline constexpr const char* kTargetDeviceVariable = "HANARE_BENCH_TARGET_DEVICE";

// The target, before its library looks for networks, and before it has threads; what listens on an
// address without a file goes on doing so where it was.
Result<void> enter_target_network();

}  // namespace hanare::bench
