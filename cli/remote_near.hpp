// SPDX-License-Identifier: Apache-2.0
//
// The near end of `hanare bench remote`: the process whose memory is far, on one network.
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/interrupt.hpp"

namespace hanare::cli {

// Of these cases, the first are rates.
inline constexpr const char* kRemoteWrite = "seq_write";
inline constexpr const char* kRemoteRead = "seq_read";
inline constexpr const char* kRemoteStrided = "strided";
inline constexpr const char* kRemoteFault = "random_fault";   // with room for what comes
inline constexpr const char* kRemoteRandom = "random_clean";  // in the place of something else
// What they are compared with.
inline constexpr const char* kRawSystem = "raw_tcp";
std::string remote_case_names();
bool is_remote_latency(const std::string& name);

// What it does; `job` is a RemoteJob as JSON.  It writes lines, each one object: {"sample":...},
// a RemoteSample; {"note":...}; {"left_out":...}: this network cannot be had, and why; in the end
// {"done":true}.
Result<void> measure_remote(const std::string& job, const sys::Interrupt& interrupt);

}  // namespace hanare::cli
