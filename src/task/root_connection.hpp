// SPDX-License-Identifier: Apache-2.0
//
// How the root of a space is started and reached: a program (`hanare-space-root`) that listens at
// an address from its beginning and belongs to nobody: who starts it is not its parent, and what is
// sent to the group of who starts it does not reach it.
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace hanare::task {

// Of the space of that name, among those of this user that see the same processes and files.
std::string address_of(const std::string& space);

// The root gets them at these numbers.
inline constexpr int kListenerNumber = 3;
inline constexpr int kKeeperNumber = 4;

// Returns once the root's own process exists.  `keeper`, if it is open, is one end of a pair: the
// root lives as long as the other end is open, and no longer; else until it has had no task for a
// moment.  SYSTEM: it cannot be started.
Result<void> start_root(sys::FileDescriptor listener, sys::FileDescriptor keeper,
                        const std::string& root_program);

// A connection on which the root waits for a request (request.hpp).  Where nobody listens, it is
// started, but not if `root_program` is empty.  TIMEOUT, SYSTEM.
Result<sys::FileDescriptor> connect_root(const std::string& address,
                                         const std::string& root_program);

}  // namespace hanare::task
