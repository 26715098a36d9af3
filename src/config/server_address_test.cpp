// SPDX-License-Identifier: Apache-2.0
#include "config/server_address.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hanare::config {
namespace {

std::string text_of_failure(const Result<ServerAddress>& result) {
    return result ? "no failure: " + server_url(*result) : result.error().text;
}

TEST(ServerAddress, HostsAndPorts) {
    const std::pair<const char*, ServerAddress> cases[] = {
        {"tcp://idle-1", {"idle-1", 7077}},
        {"tcp://idle-1.cluster_a.example:1", {"idle-1.cluster_a.example", 1}},
        {"tcp://127.0.0.1:65535", {"127.0.0.1", 65535}},
        {"tcp://10.1.2.3", {"10.1.2.3", 7077}},
        {"tcp://[::1]:9000", {"::1", 9000}},
        {"tcp://[2001:db8::17]", {"2001:db8::17", 7077}},
        {"tcp://[::ffff:10.0.0.1]:09000", {"::ffff:10.0.0.1", 9000}},
    };
    for (const auto& [text, address] : cases) {
        const auto parsed = parse_server_address(text);
        ASSERT_TRUE(parsed) << text << ": " << parsed.error().text;
        EXPECT_EQ(*parsed, address) << text;
        EXPECT_EQ(parse_server_address(server_url(*parsed)), address);
    }
}

TEST(ServerAddress, WhatIsWrongIsSaid) {
    const std::string long_name(254, 'a');
    const std::pair<std::string, const char*> cases[] = {
        {"", "does not begin with tcp://"},
        {"idle-1:7077", "does not begin with tcp://"},
        {"TCP://idle-1", "does not begin with tcp://"},
        {"tcp:/idle-1", "does not begin with tcp://"},
        {"tcp://", "lacks the host"},
        {"tcp://:7077", "lacks the host"},
        {"tcp://a b", "has no possible name of a host"},
        {"tcp://-a", "has no possible name of a host"},
        {"tcp://a/b", "has no possible name of a host"},
        {"tcp://a?size=1G", "has no possible name of a host"},
        {std::string("tcp://a\0b", 9), "has no possible name of a host"},
        {"tcp://" + long_name, "has no possible name of a host"},
        {"tcp://10.0.0.256", "has no possible IPv4 address"},
        {"tcp://10.0.1:7077", "has no possible IPv4 address"},
        {"tcp://::1", "has several colons (an IPv6 address needs brackets)"},
        {"tcp://a:1:2", "has several colons (an IPv6 address needs brackets)"},
        {"tcp://[::1", "lacks the closing bracket"},
        {"tcp://[a]:1", "has no IPv6 address in its brackets"},
        {"tcp://[10.0.0.1]:1", "has no IPv6 address in its brackets"},
        {"tcp://[]:1", "has no IPv6 address in its brackets"},
        {"tcp://[::1%eth0]:1", "has no IPv6 address in its brackets"},
        {"tcp://[::1]x", "has no possible port"},
        {"tcp://[::1]7077", "has no possible port"},
        {"tcp://a:", "has no possible port"},
        {"tcp://a:0", "has no possible port"},
        {"tcp://a:65536", "has no possible port"},
        {"tcp://a:-1", "has no possible port"},
        {"tcp://a:+1", "has no possible port"},
        {"tcp://a: 1", "has no possible port"},
        {"tcp://a:1 ", "has no possible port"},
        {"tcp://a:0x10", "has no possible port"},
        {"tcp://a:http", "has no possible port"},
    };
    for (const auto& [text, why] : cases) {
        const auto parsed = parse_server_address(text);
        ASSERT_FALSE(parsed) << text;
        EXPECT_EQ(parsed.error().status, HANARE_STATUS_INVALID_ARGUMENT) << text;
        EXPECT_NE(text_of_failure(parsed).find(why), std::string::npos) << text_of_failure(parsed);
    }
    EXPECT_EQ(text_of_failure(parse_server_address("tcp://a:0")),
              "memory server: 'tcp://a:0' has no possible port; allowed is tcp://HOST[:PORT], "
              "PORT from 1 to 65535");
}

TEST(ServerAddress, WhereToListen) {
    const auto any = parse_listen_address("--listen", "127.0.0.1:0");
    ASSERT_TRUE(any) << any.error().text;
    EXPECT_EQ(*any, (ServerAddress{"127.0.0.1", 0}));
    EXPECT_EQ(parse_listen_address("--listen", "[::]:7077"), (ServerAddress{"::", 7077}));
    EXPECT_EQ(host_and_port({"::", 7077}), "[::]:7077");
    EXPECT_EQ(
        text_of_failure(parse_listen_address("--listen", "127.0.0.1")),
        "--listen: '127.0.0.1' lacks the port; allowed is ADDR:PORT, PORT from 0 (one that is "
        "free) to 65535");
    EXPECT_FALSE(parse_listen_address("--listen", "tcp://127.0.0.1:0"));
    EXPECT_FALSE(parse_listen_address("--listen", ":7077"));
}

}  // namespace
}  // namespace hanare::config
