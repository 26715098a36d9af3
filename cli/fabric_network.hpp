// SPDX-License-Identifier: Apache-2.0
//
// The network of `hanare bench fabric --network veth`, of `hanare bench dsm --network veth` and of
// `hanare bench remote`: source and target are in networks of their own, which a veth pair joins,
// like two machines.  Nobody else sees any of it, and it is gone when these two processes have
// ended, however they do.  For processes without other threads yet.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "cli/worker_lines.hpp"
#include "sys/child.hpp"

namespace hanare::cli {

inline constexpr const char* kLoopback = "loopback";
inline constexpr const char* kVeth = "veth";
// Addresses of documentation (RFC 5737), which are nobody's.
inline constexpr const char* kVethSourceHost = "192.0.2.1";
inline constexpr const char* kVethTargetHost = "192.0.2.2";
// The target as well, after open_to_everybody().
inline constexpr const char* kVethPlainHost = "127.77.0.2";

// The interfaces of the two.
inline constexpr const char* kVethSourceDevice = "hanare0";
inline constexpr const char* kVethTargetDevice = "hanare1";
// All addresses there.
inline constexpr const char* kVethNetwork = "192.0.2.0/24";

// The source, before it starts the target, which is a child of it.
Result<void> enter_bench_network();
// The target, first of all: enters its network, says so on standard output, and is told on standard
// input that the pair is there.
Result<void> meet_source();
// The source, with what the target says: lays the pair.
Result<void> meet_target(sys::Child& target, WorkerLines& said);

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
