// SPDX-License-Identifier: Apache-2.0
#include "sys/host_address.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <memory>

namespace hanare::sys {
namespace {

Result<std::string> text_of(const sockaddr* address) {
    char text[INET6_ADDRSTRLEN] = {};
    const bool is_four = address->sa_family == AF_INET;
    const void* const bytes =
        is_four ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr)
                : &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    if (inet_ntop(address->sa_family, bytes, text, sizeof text) == nullptr) {
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "cannot write an address down");
    }
    return std::string(text);
}

// Of addresses that are set aside for documentation (RFC 5737, RFC 3849): nobody is there.
constexpr const char* kElsewhereFour = "192.0.2.1";
constexpr const char* kElsewhereSix = "2001:db8::1";
constexpr uint16_t kDiscardPort = 9;

// A datagram socket that is connected knows its route, and nothing is sent.
Result<std::string> address_towards(const sockaddr* address, socklen_t bytes) {
    const FileDescriptor socket(
        above_standard(::socket(address->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0)));
    if (!socket.is_open() || connect(socket.number(), address, bytes) != 0) {
        return fail_errno(HANARE_STATUS_NOT_FOUND, errno, "no network leads out of this machine");
    }
    return local_address(socket);
}

}  // namespace

Result<std::string> look_up_host(const std::string& name) {
    if (is_numeric_address(name)) return name;
    for (const int family : {AF_INET, AF_INET6}) {
        addrinfo wanted = {};
        wanted.ai_family = family;
        wanted.ai_socktype = SOCK_STREAM;
        addrinfo* found = nullptr;
        if (getaddrinfo(name.c_str(), nullptr, &wanted, &found) != 0) continue;
        const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
        return text_of(found->ai_addr);
    }
    return fail(HANARE_STATUS_NOT_FOUND, "there is no address of host %.150s", name.c_str());
}

Result<std::string> outward_address() {
    sockaddr_in four = {};
    four.sin_family = AF_INET;
    four.sin_port = htons(kDiscardPort);
    inet_pton(AF_INET, kElsewhereFour, &four.sin_addr);
    auto address = address_towards(reinterpret_cast<const sockaddr*>(&four), sizeof four);
    if (address) return address;
    sockaddr_in6 six = {};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(kDiscardPort);
    inet_pton(AF_INET6, kElsewhereSix, &six.sin6_addr);
    return address_towards(reinterpret_cast<const sockaddr*>(&six), sizeof six);
}

Result<std::string> local_address(int socket) {
    sockaddr_storage name = {};
    socklen_t bytes = sizeof name;
    if (getsockname(socket, reinterpret_cast<sockaddr*>(&name), &bytes) != 0) {
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "cannot tell the address of a socket");
    }
    return text_of(reinterpret_cast<const sockaddr*>(&name));
}

Result<std::string> local_address(const FileDescriptor& socket) {
    return local_address(socket.number());
}

std::string host_name() {
    char name[HOST_NAME_MAX + 1] = {};
    return gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

}  // namespace hanare::sys
