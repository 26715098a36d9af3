// SPDX-License-Identifier: Apache-2.0
//
// Addresses of memory servers: "tcp://HOST[:PORT]".  HOST is a name, an IPv4 address or an IPv6 one
// in brackets; nothing is looked up here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace hanare::config {

inline constexpr uint16_t kServerPort = 7077;

struct ServerAddress {
    std::string host;  // without brackets
    uint16_t port = kServerPort;

    friend bool operator==(const ServerAddress&, const ServerAddress&) = default;
};

// INVALID_ARGUMENT; the text names what is wrong with which text, and what is allowed.
Result<ServerAddress> parse_server_address(std::string_view text);

// "HOST:PORT", where something listens; port 0 is the kernel's choice.  `what` names the option in
// the error text.
Result<ServerAddress> parse_listen_address(std::string_view what, std::string_view text);

// "tcp://HOST:PORT" and "HOST:PORT", with brackets where they are needed.
std::string server_url(const ServerAddress& address);
std::string host_and_port(const ServerAddress& address);

}  // namespace hanare::config
