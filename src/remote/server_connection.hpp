// SPDX-License-Identifier: Apache-2.0
//
// Connections to memory servers, by who has the secret.
#pragma once

#include "base/result.hpp"
#include "fabric/tcp_link.hpp"

namespace hanare::remote {

// As TcpLink::shake_hands_with().  Blocks are sealed by themselves (block_seals.hpp), and so are
// not sealed once more on their way.  On loopback, where nobody can listen or interfere who could
// not do worse, nor is anything else, if the server agrees.
Result<fabric::TcpLink::Connected> connect_to_server(fabric::TcpLink::Settings settings);

}  // namespace hanare::remote
