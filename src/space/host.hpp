// SPDX-License-Identifier: Apache-2.0
//
// The root of a space whose tasks come one by one: from proxies (proxy.hpp), which launchers start
// as they would start the programs themselves, or from a process that has a space by the C API.
#pragma once

#include "base/result.hpp"
#include "sys/file.hpp"

namespace hanare::space {

// The process that serve_proxies() is for: `program serve`, with this one's descriptors.  Nobody
// waits for it but who waits for everybody.
bool begin_host(const char* program);

// Accepts proxies at the listener, begins their tasks and tells them how these end; kills the task
// of a proxy that is no more.  Returns when there has been neither task nor proxy for a while, or,
// where the keeper is open, as soon as its other end is closed; tasks end with this process.  For
// the main thread of a process without other threads.
Result<void> serve_proxies(const sys::FileDescriptor& listener, const sys::FileDescriptor& keeper);

}  // namespace hanare::space
