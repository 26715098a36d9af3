// SPDX-License-Identifier: Apache-2.0
#include "sys/numeric_address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>

namespace hanare::sys {

bool is_numeric_address(const std::string& host) {
    in6_addr any = {};
    return inet_pton(AF_INET, host.c_str(), &any) == 1 ||
           inet_pton(AF_INET6, host.c_str(), &any) == 1;
}

bool is_unspecified_address(const std::string& host) {
    in_addr four = {};
    if (inet_pton(AF_INET, host.c_str(), &four) == 1) return four.s_addr == htonl(INADDR_ANY);
    in6_addr six = {};
    if (inet_pton(AF_INET6, host.c_str(), &six) != 1) return false;
    constexpr size_t kFour = 12;  // where an IPv4 address stands in a mapped one
    in_addr mapped = {};
    std::memcpy(&mapped, &six.s6_addr[kFour], sizeof mapped);
    return IN6_IS_ADDR_UNSPECIFIED(&six) ||
           (IN6_IS_ADDR_V4MAPPED(&six) && mapped.s_addr == htonl(INADDR_ANY));
}

}  // namespace hanare::sys
