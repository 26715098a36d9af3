// SPDX-License-Identifier: Apache-2.0
#include "sys/host_address.hpp"

#include <gtest/gtest.h>

#include "sys/tcp_socket.hpp"

namespace hanare::sys {
namespace {

TEST(HostAddress, NumericOnes) {
    for (const char* host : {"127.0.0.1", "::1", "2001:db8::7"}) {
        EXPECT_TRUE(is_numeric_address(host)) << host;
        EXPECT_EQ(look_up_host(host).value(), host);
    }
    for (const char* host : {"", "localhost", "127.0.0", "1.2.3.4.5", "[::1]", "127.0.0.1 "}) {
        EXPECT_FALSE(is_numeric_address(host)) << host;
    }
}

TEST(HostAddress, Unspecified) {
    for (const char* host : {"0.0.0.0", "::", "0::0", "::ffff:0.0.0.0"}) {
        EXPECT_TRUE(is_unspecified_address(host)) << host;
    }
    for (const char* host : {"127.0.0.1", "::1", "0.0.0.1", "::ffff:127.0.0.1", "x", ""}) {
        EXPECT_FALSE(is_unspecified_address(host)) << host;
    }
}

TEST(HostAddress, Names) {
    EXPECT_TRUE(is_loopback(look_up_host("localhost").value()));
    EXPECT_EQ(look_up_host("no-such-host.invalid").error().status, HANARE_STATUS_NOT_FOUND);
}

TEST(HostAddress, OfThisMachine) {
    const auto listener = listen_tcp("127.0.0.1", 0).value();
    EXPECT_EQ(local_address(listener).value(), "127.0.0.1");
    EXPECT_EQ(local_address(-1).error().status, HANARE_STATUS_SYSTEM);
    EXPECT_FALSE(host_name().empty());
    const auto outward = outward_address();
    if (!outward) GTEST_SKIP() << outward.error().text;
    // One can listen there: it is this machine's.
    EXPECT_TRUE(listen_tcp(*outward, 0)) << *outward;
}

}  // namespace
}  // namespace hanare::sys
