// SPDX-License-Identifier: Apache-2.0
//
// The root of a space whose tasks come one by one: from proxies (proxy.hpp), which launchers start
// as they would start the programs themselves.
#pragma once

#include "base/result.hpp"
#include "sys/file.hpp"

namespace hanare::space {

// Accepts proxies at the listener, begins their tasks and tells them how these end; kills the task
// of a proxy that is no more.  Returns when there has been neither task nor proxy for a while.  For
// the main thread of a process without other threads.
Result<void> serve_proxies(const sys::FileDescriptor& listener);

}  // namespace hanare::space
