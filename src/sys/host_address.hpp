// SPDX-License-Identifier: Apache-2.0
//
// Numeric addresses: of names, of this machine as others reach it, of the ends of connections.
// Looking a name up may take as long as the resolver likes.  Any thread.
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/file.hpp"
#include "sys/numeric_address.hpp"

namespace hanare::sys {

// The first address of the name, IPv4 before IPv6; a numeric one is handed through.  NOT_FOUND.
Result<std::string> look_up_host(const std::string& name);

// The address that packets to other networks carry, without sending one.  NOT_FOUND where nothing
// leads out of this machine.
Result<std::string> outward_address();

// This machine's address in a connection, or of what a listener is bound to.
Result<std::string> local_address(const FileDescriptor& socket);
Result<std::string> local_address(int socket);

std::string host_name();

}  // namespace hanare::sys
