// SPDX-License-Identifier: Apache-2.0
//
// The network of `hanare bench fabric --network veth` and of `hanare bench remote`: source and
// target are in networks of their own, which a veth pair joins, like two machines.  Nobody else
// sees any of it, and it is gone when these two processes have ended, however they do.  For
// processes without other threads yet.
#pragma once

#include <unistd.h>

#include <cstdint>

#include "base/result.hpp"

namespace hanare::cli {

inline constexpr const char* kLoopback = "loopback";
inline constexpr const char* kVeth = "veth";
// Addresses of documentation (RFC 5737), which are nobody's.
inline constexpr const char* kVethTargetHost = "192.0.2.2";
// The target as well, after open_to_everybody().
inline constexpr const char* kVethPlainHost = "127.77.0.2";

// The interfaces of the two.
inline constexpr const char* kVethSourceDevice = "hanare0";
inline constexpr const char* kVethTargetDevice = "hanare1";
// All addresses there.
inline constexpr const char* kVethNetwork = "192.0.2.0/24";

// The source, before it starts the target; the target, first of all.
Result<void> enter_bench_network();
// The source: lays the pair between itself and the target, which is in its network by now.
Result<void> join_target(pid_t target);
// The target: its end, afterwards.
Result<void> join_source();

// Afterwards, by each end for itself.
enum class NetworkEnd { kSource, kTarget };
// Until the pair works, as those have to know who choose by what is there.
Result<void> await_link(NetworkEnd end);
// Without a secret memory servers and their clients keep to addresses of this machine (127/8), also
// where a network is so private that this would not matter.  Here these lead over the pair.
Result<void> open_to_everybody(NetworkEnd end);
// What goes out there is that much, as on a slower link (tc tbf).  NOT_SUPPORTED, with the reason.
Result<void> limit_rate(NetworkEnd end, uint32_t mbit_per_s);

}  // namespace hanare::cli
