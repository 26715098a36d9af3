// SPDX-License-Identifier: Apache-2.0
#include "fabric/self_link.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "fabric/fifo.hpp"

namespace hanare::fabric {
namespace {

class SelfLinkTest : public testing::Test {
protected:
    hanare_status run(Operation& call, Kind kind, const Capability& capability, uint64_t offset) {
        call.kind = kind;
        call.capability = capability;
        call.offset = offset;
        const hanare_status status = link.carry_out(call);
        EXPECT_TRUE(call.is_done() && link.test(call) && link.wait(call) == status);
        return status;
    }

    alignas(Fifo::kAlignment) std::byte memory[1024] = {};
    ExposedRegions regions;
    Capability all =
        regions.capability(regions.expose(memory, kAllRights).value(), kAllRights).value();
    SelfLink link{regions};
};

TEST_F(SelfLinkTest, AllKinds) {
    const std::byte data[3] = {std::byte{1}, std::byte{2}, std::byte{3}};
    Operation put;
    put.source = data;
    EXPECT_EQ(run(put, Kind::kPut, all, 1), HANARE_STATUS_OK);
    std::byte seen[3] = {};
    Operation get;
    get.destination = seen;
    EXPECT_EQ(run(get, Kind::kGet, all, 1), HANARE_STATUS_OK);
    EXPECT_EQ(seen[2], std::byte{3});
    Operation add;
    add.operand = 5;
    EXPECT_EQ(run(add, Kind::kFetch, all, 8), HANARE_STATUS_OK);
    EXPECT_EQ(add.value(), 0u);
    ASSERT_EQ(Fifo::format(memory), HANARE_STATUS_OK);
    Operation push;
    push.source = data;
    EXPECT_EQ(run(push, Kind::kPush, all, 0), HANARE_STATUS_OK);
    Operation pop;
    pop.destination = seen;
    EXPECT_EQ(run(pop, Kind::kPop, all, 0), HANARE_STATUS_OK);
    EXPECT_EQ(pop.value(), 3u);
}

TEST_F(SelfLinkTest, Refusals) {
    std::byte data[8] = {};
    Capability forged = all;
    forged.key.words[0] ^= 1;
    Operation calls[7];
    for (Operation& call : calls) call.source = call.destination = data;
    EXPECT_EQ(run(calls[0], Kind::kPut, forged, 0), HANARE_STATUS_BAD_KEY);
    EXPECT_EQ(run(calls[1], Kind::kPut, all, 1020), HANARE_STATUS_OUT_OF_RANGE);
    EXPECT_EQ(run(calls[2], Kind::kPut, all, UINT64_MAX - 3), HANARE_STATUS_OUT_OF_RANGE);
    calls[3].width = 3;
    EXPECT_EQ(run(calls[3], Kind::kFetch, all, 0), HANARE_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(run(calls[4], Kind::kPush, all, 8), HANARE_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(run(calls[5], static_cast<Kind>(99), all, 0), HANARE_STATUS_INVALID_ARGUMENT);
    link.end();
    EXPECT_EQ(run(calls[6], Kind::kGet, all, 0), HANARE_STATUS_PEER_LOST);
}

}  // namespace
}  // namespace hanare::fabric
