// SPDX-License-Identifier: Apache-2.0
#include "job/node_list.hpp"

#include <gtest/gtest.h>

namespace hanare::job {
namespace {

using Names = std::vector<std::string>;

Names expand(std::string_view list) {
    auto names = expand_node_list("LIST", list);
    return names ? *names : Names{std::string("error: ") + names.error().text};
}

TEST(NodeList, Lists) {
    EXPECT_EQ(expand("a"), Names({"a"}));
    EXPECT_EQ(expand("a,b"), Names({"a", "b"}));
    EXPECT_EQ(expand("a[01-03,7],b"), Names({"a01", "a02", "a03", "a7", "b"}));
    EXPECT_EQ(expand("n[9-11]"), Names({"n9", "n10", "n11"}));
    EXPECT_EQ(expand("n[098-101]"), Names({"n098", "n099", "n100", "n101"}));
    EXPECT_EQ(expand("[1-2]"), Names({"1", "2"}));
    EXPECT_EQ(expand("a[1,2]-eth0.x,b"), Names({"a1-eth0.x", "a2-eth0.x", "b"}));
    EXPECT_EQ(expand("r[0-1]n[0-1]"), Names({"r0n0", "r0n1", "r1n0", "r1n1"}));
    EXPECT_EQ(expand("n[0-65535]").size(), 65536u);
}

TEST(NodeList, WhatIsNone) {
    for (const char* list : {"",
                             ",",
                             "a,",
                             ",a",
                             "a,,b",
                             "a[",
                             "a]",
                             "a[]",
                             "a[1",
                             "a[1-]",
                             "a[-1]",
                             "a[2-1]",
                             "a[x]",
                             "a[1,]",
                             "a[,1]",
                             "a[1-2-3]",
                             "a b",
                             "a[1 ]",
                             "a[[1]]",
                             "n[0-65536]",
                             "n[0-4294967295]",
                             "n[99999999999]",
                             "a[0-999]b[0-999]",
                             "a[0-40000],b[0-40000]",
                             "a\n"}) {
        const auto names = expand_node_list("LIST", list);
        ASSERT_FALSE(names) << list;
        EXPECT_EQ(names.error().status, HANARE_STATUS_INVALID_ARGUMENT);
        EXPECT_NE(std::string(names.error().text).find("LIST"), std::string::npos);
    }
}

// Before they are made: all of them would take gigabytes.
TEST(NodeList, NamesThatAreTooLong) {
    const std::string zeros(60'000, '0');
    EXPECT_FALSE(expand_node_list("LIST", "a[" + zeros + "0-65535]"));
    EXPECT_FALSE(expand_node_list("LIST", "a[0-65535]" + zeros));
    EXPECT_FALSE(expand_node_list("LIST", zeros));
    const std::string longest(250, 'n');
    EXPECT_EQ(expand_node_list("LIST", longest + "[9-10]bcd").value().back(), longest + "10bcd");
    EXPECT_FALSE(expand_node_list("LIST", longest + "[99999-100000]"));
    EXPECT_TRUE(expand_node_list("LIST", longest + "[99998-99999]"));
}

}  // namespace
}  // namespace hanare::job
