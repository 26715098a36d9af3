// SPDX-License-Identifier: Apache-2.0
#include "config/server_address.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "config/rules.hpp"
#include "sys/numeric_address.hpp"

namespace hanare::config {
namespace {

constexpr std::string_view kPrefix = "tcp://";
constexpr size_t kNameBytesMax = 253;  // RFC 1035

// What is wrong, with the option, the whole text and what is allowed there.
struct Context {
    std::string_view what;
    std::string_view text;
    std::string_view allowed;

    std::unexpected<Error> bad(std::string_view why) const {
        return bad_value(what, text, why, allowed);
    }
};

bool is_name(std::string_view host) {
    const auto is_allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '.' || c == '-' || c == '_';
    };
    return host.size() <= kNameBytesMax && !host.starts_with('-') && !host.starts_with('.') &&
           std::ranges::all_of(host, is_allowed);
}

// The host's part of `rest`, which is removed from it.
Result<std::string> take_host(const Context& context, std::string_view& rest) {
    if (rest.starts_with('[')) {
        const size_t end = rest.find(']');
        if (end == rest.npos) return context.bad("lacks the closing bracket");
        const std::string host(rest.substr(1, end - 1));
        rest.remove_prefix(end + 1);
        if (host.find(':') == host.npos || !sys::is_numeric_address(host)) {
            return context.bad("has no IPv6 address in its brackets");
        }
        return host;
    }
    if (std::ranges::count(rest, ':') > 1) {
        return context.bad("has several colons (an IPv6 address needs brackets)");
    }
    const std::string host(rest.substr(0, rest.find(':')));
    rest.remove_prefix(host.size());
    if (host.empty()) return context.bad("lacks the host");
    if (!is_name(host)) return context.bad("has no possible name of a host");
    const bool looks_numeric = host.find_first_not_of("0123456789.") == host.npos;
    if (looks_numeric && !sys::is_numeric_address(host)) {
        return context.bad("has no possible IPv4 address");
    }
    return host;
}

// Digits only, without a sign or blanks.
std::optional<uint16_t> number_of(std::string_view digits) {
    uint16_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return {};
    return number;
}

Result<ServerAddress> parse(const Context& context, std::string_view rest, uint16_t port_min,
                            bool needs_port) {
    ServerAddress address;
    HANARE_TRY_ASSIGN(address.host, take_host(context, rest));
    if (rest.empty()) {
        if (needs_port) return context.bad("lacks the port");
        return address;
    }
    const std::optional<uint16_t> port =
        rest.starts_with(':') ? number_of(rest.substr(1)) : std::nullopt;
    if (!port || *port < port_min) return context.bad("has no possible port");
    address.port = *port;
    return address;
}

}  // namespace

Result<ServerAddress> parse_server_address(std::string_view text) {
    const Context context = {"memory server", text, "tcp://HOST[:PORT], PORT from 1 to 65535"};
    if (!text.starts_with(kPrefix)) return context.bad("does not begin with tcp://");
    return parse(context, text.substr(kPrefix.size()), 1, false);
}

Result<ServerAddress> parse_listen_address(std::string_view what, std::string_view text) {
    return parse({what, text, "ADDR:PORT, PORT from 0 (one that is free) to 65535"}, text, 0, true);
}

std::string host_and_port(const ServerAddress& address) {
    const bool needs_brackets = address.host.find(':') != std::string::npos;
    const std::string host = needs_brackets ? "[" + address.host + "]" : address.host;
    return host + ":" + std::to_string(address.port);
}

std::string server_url(const ServerAddress& address) {
    return std::string(kPrefix) + host_and_port(address);
}

}  // namespace hanare::config
