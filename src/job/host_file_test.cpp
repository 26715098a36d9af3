// SPDX-License-Identifier: Apache-2.0
#include "job/host_file.hpp"

#include <gtest/gtest.h>

namespace hanare::job {
namespace {

TEST(HostFile, HostsAndSlots) {
    const auto hosts = parse_host_file("f",
                                       "# machines\na\n\n  b \t 4 # four\nuser@c.d-e_f 2\r\n"
                                       "10.0.0.1 65536");
    ASSERT_TRUE(hosts) << hosts.error().text;
    ASSERT_EQ(hosts->size(), 4u);
    EXPECT_EQ((*hosts)[0].name, "a");
    EXPECT_EQ((*hosts)[0].slots, 1u);
    EXPECT_EQ((*hosts)[1].name, "b");
    EXPECT_EQ((*hosts)[1].slots, 4u);
    EXPECT_EQ((*hosts)[2].name, "user@c.d-e_f");
    EXPECT_EQ((*hosts)[3].slots, 65536u);
}

TEST(HostFile, MistakesNameTheirLine) {
    for (const char* line :
         {"a 0", "a x", "a 65537", "a 1 2", "-oProxyCommand=x", "a;b 1", "a$(b)", "a -1", "'a'"}) {
        const auto hosts = parse_host_file("machines", std::string("good\n") + line + "\n");
        ASSERT_FALSE(hosts) << line;
        EXPECT_EQ(hosts.error().status, HANARE_STATUS_INVALID_ARGUMENT);
        EXPECT_NE(std::string(hosts.error().text).find("machines:2"), std::string::npos)
            << hosts.error().text;
    }
    for (const char* text : {"", "\n", "# nobody\n"}) {
        EXPECT_FALSE(parse_host_file("machines", text)) << text;
    }
}

TEST(HostFile, TasksFillTheHostsInOrder) {
    const std::vector<Host> hosts = {{"a", 2}, {"b", 3}, {"c", 1}};
    const auto some = place_tasks(hosts, 4).value();
    ASSERT_EQ(some.size(), 2u);
    EXPECT_EQ(some[1].host, "b");
    EXPECT_EQ(some[1].first_rank, 2u);
    EXPECT_EQ(some[1].count, 2u);
    const auto all = place_tasks(hosts, std::nullopt).value();
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all[2].first_rank, 5u);
    EXPECT_EQ(place_tasks(hosts, 7).error().status, HANARE_STATUS_INVALID_ARGUMENT);
    EXPECT_FALSE(place_tasks({{"a", 65536}, {"b", 1}}, std::nullopt));
}

}  // namespace
}  // namespace hanare::job
