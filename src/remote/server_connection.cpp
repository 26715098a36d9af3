// SPDX-License-Identifier: Apache-2.0
#include "remote/server_connection.hpp"

#include "sys/tcp_socket.hpp"

namespace hanare::remote {

Result<fabric::TcpLink::Connected> connect_to_server(fabric::TcpLink::Settings settings) {
    if (settings.secret && sys::is_loopback(settings.host)) {
        settings.protection = fabric::Protection::kAuthenticated;
        auto connected = fabric::TcpLink::shake_hands_with(settings);
        // A server that wants more says no more than one with another secret.
        const bool may_want_more =
            !connected && (connected.error().status == HANARE_STATUS_BAD_KEY ||
                           connected.error().status == HANARE_STATUS_PEER_LOST);
        if (!may_want_more) return connected;
    }
    settings.protection = fabric::Protection::kSealedButData;
    return fabric::TcpLink::shake_hands_with(settings);
}

}  // namespace hanare::remote
