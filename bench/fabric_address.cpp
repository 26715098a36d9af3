// SPDX-License-Identifier: Apache-2.0
#include "bench/fabric_address.hpp"

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <string_view>
#include <unistd.h>

#include "fabric/local_link.hpp"
#include "fabric/tcp_link.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::bench {
namespace {

constexpr uint32_t kSpinUs = 50;
constexpr int kConnectMs = 10'000;

// It came over a pipe, from a child.
Result<fabric::Secret> secret_of(std::string_view text) {
    int ends[2];
    if (pipe(ends) != 0) return fail_errno(HANARE_STATUS_SYSTEM, errno, "cannot make a pipe");
    const sys::FileDescriptor out(ends[0]);
    sys::FileDescriptor in(ends[1]);
    if (write(in.number(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "writing to a pipe");
    }
    in.close();
    return fabric::Secret::read_descriptor(out.number());
}

}  // namespace

Result<FabricAddress> parse_address(const std::string& text) {
    FabricAddress address;
    fabric::Capability& key = address.capability;
    char host[60];
    char local[100];
    char secret[100];
    if (std::sscanf(
            text.c_str(),
            "%59s %" SCNu16 " %" SCNu16 " %" SCNu16 " %u %u %u %" SCNu64 " %" SCNu64 " %99s %99s",
            host, &address.port, &address.secure_port, &address.raw_port, &key.region, &key.epoch,
            &key.rights, &key.key.words[0], &key.key.words[1], local, secret) == 11) {
        address.host = host;
        address.local = local;
        HANARE_TRY_ASSIGN(address.secret, secret_of(secret));
        return address;
    }
    return fail(HANARE_STATUS_INTERNAL, "not an address of a target: %.100s", text.c_str());
}

Result<std::unique_ptr<fabric::Link>> connect_by(const FabricAddress& target, FabricEngine engine) {
    if (engine == FabricEngine::kRing || engine == FabricEngine::kShm) {
        return fabric::LocalLink::connect({.address = target.local,
                                           .spin_us = kSpinUs,
                                           .timeout_ms = kConnectMs,
                                           .is_direct = engine == FabricEngine::kShm});
    }
    fabric::TcpLink::Settings settings = {.host = target.host,
                                          .port = target.port,
                                          .secret = {},
                                          .spin_us = kSpinUs,
                                          .timeout_ms = kConnectMs};
    if (engine == FabricEngine::kSecure) {
        settings.port = target.secure_port;
        settings.secret = target.secret;
        settings.protection = fabric::Protection::kSealed;
    } else if (!sys::is_loopback(target.host)) {
        settings.secret = target.secret;
        settings.protection = fabric::Protection::kAuthenticated;
    }
    return fabric::TcpLink::connect(settings);
}

}  // namespace hanare::bench
