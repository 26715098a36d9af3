// SPDX-License-Identifier: Apache-2.0
//
// The network of `hanare bench fabric --network veth`: source and target are in networks of their
// own, which a veth pair joins, like two machines.  Nobody else sees any of it, and it is gone when
// these two processes have ended, however they do.  For processes without other threads yet.
#pragma once

#include <unistd.h>

#include "base/result.hpp"

namespace hanare::cli {

inline constexpr const char* kLoopback = "loopback";
inline constexpr const char* kVeth = "veth";
// Addresses of documentation (RFC 5737), which are nobody's.
inline constexpr const char* kVethTargetHost = "192.0.2.2";

// The source, before it starts the target; the target, first of all.
Result<void> enter_bench_network();
// The source: lays the pair between itself and the target, which is in its network by now.
Result<void> join_target(pid_t target);
// The target: its end, afterwards.
Result<void> join_source();

}  // namespace hanare::cli
