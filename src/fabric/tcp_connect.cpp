// SPDX-License-Identifier: Apache-2.0
//
// How a TcpLink gets its connection: apart from the link itself, so that who is given one needs
// nothing of the handshake.
#include "fabric/handshake.hpp"
#include "fabric/tcp_link.hpp"

namespace hanare::fabric {

Result<TcpLink::Connected> TcpLink::shake_hands_with(const Settings& settings) {
    if (!settings.secret && !sys::is_loopback(settings.host)) {
        return hanare::fail(HANARE_STATUS_PERMISSION,
                            "connecting to %.100s, which others may listen to, needs a secret",
                            settings.host.c_str());
    }
    Connected connected;
    HANARE_TRY_ASSIGN(connected.socket,
                      sys::connect_tcp(settings.host, settings.port, settings.timeout_ms));
    if (!settings.secret) return connected;
    const Protection protection = settings.protection.value_or(Protection::kSealed);
    HANARE_TRY_ASSIGN(const SessionKeys keys,
                      shake_hands(Handshake::Side::kSource, connected.socket.number(),
                                  *settings.secret, protection, settings.timeout_ms));
    if (protection != Protection::kAuthenticated) connected.keys = keys;
    connected.protection = protection;
    return connected;
}

Result<std::unique_ptr<TcpLink>> TcpLink::connect(const Settings& settings) {
    HANARE_TRY_ASSIGN(Connected connected, shake_hands_with(settings));
    return over(std::move(connected), settings.spin_us);
}

}  // namespace hanare::fabric
