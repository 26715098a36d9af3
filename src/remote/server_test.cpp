// SPDX-License-Identifier: Apache-2.0
//
// A server that says what it wants, over a real connection.
#include "remote/server.hpp"

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/units.hpp"
#include "fabric/tcp_service.hpp"

namespace hanare::remote {
namespace {

constexpr uint64_t kUnit = lease::kExtentAlignmentBytes;

// Opens leases, and says that they have these extents.
class Liar : public fabric::CallHandler {
public:
    hanare_status answer_call(uint64_t, std::span<const std::byte> bytes, std::span<std::byte> room,
                              size_t& answered) noexcept override {
        lease::Question question;
        std::memcpy(&question, bytes.data(), sizeof question);
        const size_t known = question.what == lease::Ask::kGrow ? question.first : extents.size();
        std::vector<lease::Extent> list;
        for (size_t i = known; i < extents.size(); ++i) {
            list.push_back({.capability = {}, .bytes = extents[i]});
        }
        lease::Answer answer;
        answer.count = static_cast<uint32_t>(list.size());
        answer.total_bytes = total_bytes;
        answer.lease.number = 1;
        std::memcpy(room.data(), &answer, sizeof answer);
        answered = sizeof answer;
        if (list.empty()) return HANARE_STATUS_OK;
        std::memcpy(room.data() + answered, list.data(), list.size() * sizeof list[0]);
        answered += list.size() * sizeof list[0];
        return HANARE_STATUS_OK;
    }
    void caller_left(uint64_t) noexcept override {}

    // Before it is asked.
    uint64_t total_bytes = 0;
    std::vector<uint64_t> extents;
};

class ServerTest : public testing::Test {
protected:
    ~ServerTest() override {
        server.reset();
        service->stop();
    }
    void open(uint64_t total_bytes, const std::vector<uint64_t>& extents) {
        server.reset();
        handler.total_bytes = total_bytes;
        handler.extents = extents;
        const auto connect = [this](Use) {
            return fabric::TcpLink::connect(
                {.host = "127.0.0.1", .port = service->port(), .secret = {}});
        };
        server = Server::open({.address = "tcp://127.0.0.1:1", .client = "test"}, connect).value();
    }

    Liar handler;
    fabric::ExposedRegions regions;
    std::unique_ptr<fabric::TcpService> service =
        fabric::TcpService::open({.host = "127.0.0.1", .calls = &handler}, regions).value();
    std::jthread thread{[this] { service->run(); }};
    std::unique_ptr<Server> server;
};

TEST_F(ServerTest, LendsUpToWhatItHas) {
    open(3 * kUnit, {kUnit, 2 * kUnit});
    EXPECT_EQ(server->grow(2 * kUnit), HANARE_STATUS_OK);
    EXPECT_EQ(server->bytes(), 3 * kUnit);
    EXPECT_EQ(server->place_of(2 * kUnit).offset, kUnit);
    EXPECT_EQ(server->place_of(3 * kUnit).bytes, 0u);
}

// Their sum would wrap, and then places would be anywhere.
TEST_F(ServerTest, LendsNoMoreThanItHas) {
    constexpr uint64_t kHuge = uint64_t{1} << 62;
    const std::pair<uint64_t, std::vector<uint64_t>> cases[] = {
        {3 * kUnit, {4 * kUnit}},
        {3 * kUnit, {kUnit, 3 * kUnit}},
        {3 * kUnit, {kUnit, kHuge, kHuge, kHuge, kHuge}},
        {UINT64_MAX, {kHuge, kHuge, kHuge, kHuge}},
        {0, {kUnit}},
    };
    for (const auto& [total_bytes, extents] : cases) {
        open(total_bytes, extents);
        EXPECT_EQ(server->grow(UINT64_MAX), HANARE_STATUS_STORE_IO);
        ASSERT_TRUE(server->is_lost());
        EXPECT_NE(std::string(server->trouble()).find("makes no sense"), std::string::npos);
        uint64_t end = 0;
        for (const uint64_t bytes : extents) {
            if (bytes > total_bytes - end) break;
            end += bytes;
        }
        EXPECT_EQ(server->bytes(), end);
    }
}

}  // namespace
}  // namespace hanare::remote
