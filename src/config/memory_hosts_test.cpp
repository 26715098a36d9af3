// SPDX-License-Identifier: Apache-2.0
#include "config/memory_hosts.hpp"

#include <gtest/gtest.h>

#include "base/units.hpp"

namespace hanare::config {
namespace {

TEST(MemoryHosts, HostsAndTheirMemory) {
    const auto hosts = parse_memory_hosts("f",
                                          "# machines\nmaster 1000\n\n  b \t 750 # one\n"
                                          "user@c.d-e_f 4\r\n[fe80::1] 4294967296");
    ASSERT_TRUE(hosts) << hosts.error().text;
    ASSERT_EQ(hosts->size(), 4u);
    EXPECT_EQ((*hosts)[0].name, "master");
    EXPECT_EQ((*hosts)[0].bytes, 1000 * kMiB);
    EXPECT_EQ((*hosts)[1].bytes, 750 * kMiB);
    EXPECT_EQ((*hosts)[1].where, "f:4");
    EXPECT_EQ((*hosts)[2].name, "user@c.d-e_f");
    EXPECT_EQ(network_name((*hosts)[2]), "c.d-e_f");
    EXPECT_EQ(network_name((*hosts)[3]), "fe80::1");
    EXPECT_EQ((*hosts)[3].bytes, uint64_t{1} << 52);
}

TEST(MemoryHosts, MistakesNameTheirLine) {
    for (const char* line :
         {"a", "a 0", "a x", "a -1", "a 1.5", "a 4294967297", "a 8G", "a 99999999999999999999999",
          "a 1 2", "-oProxyCommand=x 1", "a;b 1", "a$(b) 1", "'a' 1", "a@ 1"}) {
        const auto hosts = parse_memory_hosts("hosts", std::string("good 1\n") + line + "\n");
        ASSERT_FALSE(hosts) << line;
        EXPECT_EQ(hosts.error().status, HANARE_STATUS_INVALID_ARGUMENT);
        EXPECT_NE(std::string(hosts.error().text).find("hosts:2"), std::string::npos)
            << hosts.error().text;
    }
    for (const char* text : {"", "\n", "# nobody\n"}) {
        EXPECT_FALSE(parse_memory_hosts("hosts", text)) << text;
    }
}

TEST(MemoryHosts, TheFirstOfThem) {
    const auto all = parse_memory_hosts("hosts", "a 1\nb 2\nc 3\n").value();
    EXPECT_EQ(first_hosts("hosts", all, std::nullopt)->size(), 3u);
    const auto two = first_hosts("hosts", all, 2).value();
    ASSERT_EQ(two.size(), 2u);
    EXPECT_EQ(two.back().name, "b");
    const auto four = first_hosts("hosts", all, 4);
    ASSERT_FALSE(four);
    EXPECT_EQ(four.error().status, HANARE_STATUS_INVALID_ARGUMENT);
    EXPECT_STREQ(four.error().text, "-n 4: hosts names 3 hosts, the computing host among them");
}

}  // namespace
}  // namespace hanare::config
