// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.hpp"
#include "remote/remote_store.hpp"
#include "remote/server_process.hpp"
#include "server/memory_server.hpp"
#include "sys/clock.hpp"
#include "sys/event.hpp"

namespace hanare::remote {
namespace {

constexpr size_t kBlock = 64 * kKiB;

std::unique_ptr<server::MemoryServer> start_server(uint64_t bytes, uint64_t quota = UINT64_MAX) {
    auto server = server::MemoryServer::open({.memory_bytes = bytes, .quota_bytes = quota}).value();
    EXPECT_TRUE(server->start());
    return server;
}

Result<std::unique_ptr<store::Store>> open_store(uint16_t port, uint64_t size_bytes = 0,
                                                 int timeout_ms = 3000, bool is_sealed = false) {
    const auto connect = [&](Use) {
        return fabric::TcpLink::connect(
            {.host = "127.0.0.1", .port = port, .secret = {}, .timeout_ms = timeout_ms});
    };
    HANARE_TRY_ASSIGN(
        auto server,
        Server::open({.address = "tcp://127.0.0.1:1", .client = "test", .timeout_ms = timeout_ms},
                     connect));
    return RemoteStore::open(std::move(server), {.size_bytes = size_bytes, .is_sealed = is_sealed});
}

std::vector<std::byte> random_block(Prng& prng, size_t bytes = kBlock) {
    std::vector<std::byte> data(bytes);
    for (std::byte& each : data) each = static_cast<std::byte>(prng.next());
    return data;
}

store::IoRequest request_for(store::IoKind kind, uint64_t offset, std::vector<std::byte>& data) {
    store::IoRequest request;
    request.kind = kind;
    request.offset = offset;
    request.memory = data.data();
    request.bytes = data.size();
    return request;
}

// Blocks as they are, or sealed.
class RemoteStoreTest : public testing::TestWithParam<bool> {
protected:
    std::unique_ptr<server::MemoryServer> server = start_server(256 * kMiB);
    std::unique_ptr<store::Store> store =
        open_store(server->port(), 0, Server::kTimeoutMs, GetParam()).value();
    Prng prng{11};
};
INSTANTIATE_TEST_SUITE_P(Kept, RemoteStoreTest, testing::Bool(), [](const auto& each) {
    return std::string(each.param ? "Sealed" : "Plain");
});

TEST_P(RemoteStoreTest, KeepsWhatIsWritten) {
    constexpr uint64_t kBlocks = 300;
    const uint64_t begin = store->reserve(kBlocks * kBlock).value();
    std::vector<std::vector<std::byte>> blocks;
    for (uint64_t i = 0; i < kBlocks; ++i) {
        blocks.push_back(random_block(prng));
        ASSERT_EQ(store->write(begin + i * kBlock, blocks[i].data(), kBlock), HANARE_STATUS_OK);
    }
    std::vector<std::byte> seen(kBlock);
    for (uint64_t i = kBlocks; i-- > 0;) {
        ASSERT_EQ(store->read(begin + i * kBlock, seen.data(), kBlock), HANARE_STATUS_OK);
        ASSERT_TRUE(seen == blocks[i]) << i;
    }
}

TEST_P(RemoteStoreTest, ReservesInSeveralExtents) {
    std::vector<uint64_t> begins;
    for (int i = 0; i < 5; ++i) begins.push_back(store->reserve(30 * kMiB).value());
    for (const uint64_t begin : begins) {
        // Over whatever boundary there may be.
        std::vector<std::byte> data = random_block(prng, 30 * kMiB);
        ASSERT_EQ(store->write(begin, data.data(), data.size()), HANARE_STATUS_OK);
        std::vector<std::byte> seen(data.size());
        ASSERT_EQ(store->read(begin, seen.data(), seen.size()), HANARE_STATUS_OK);
        ASSERT_TRUE(seen == data);
    }
}

TEST_P(RemoteStoreTest, IsFullWhenTheServerIs) {
    EXPECT_EQ(store->reserve(uint64_t{1} << 40).error().status, HANARE_STATUS_STORE_FULL);
    ASSERT_TRUE(store->reserve(100 * kMiB));
    const auto second = open_store(server->port()).value();
    const auto refused = second->reserve(200 * kMiB);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().status, HANARE_STATUS_STORE_FULL);
    EXPECT_TRUE(second->reserve(50 * kMiB));
    EXPECT_EQ(store->trouble(), nullptr);
}

TEST_P(RemoteStoreTest, MemoryIsFreeWhenTheClientHasGone) {
    auto second = open_store(server->port(), 200 * kMiB).value();
    EXPECT_FALSE(store->reserve(100 * kMiB));
    second.reset();
    // Asks again while what has come back is wiped.
    const uint64_t end_ns = sys::now_ns() + 10'000'000'000;
    bool is_free = false;
    while (!is_free && sys::now_ns() < end_ns) is_free = store->reserve(100 * kMiB).has_value();
    EXPECT_TRUE(is_free);
}

TEST_P(RemoteStoreTest, SizeIsLeasedAtOnceAndIsTheLimit) {
    const auto sized = open_store(server->port(), 64 * kMiB).value();
    EXPECT_GE(server->status().leased_bytes, 64 * kMiB);
    EXPECT_TRUE(sized->reserve(60 * kMiB));
    EXPECT_FALSE(sized->reserve(8 * kMiB));
    EXPECT_EQ(open_store(server->port(), 500 * kMiB).error().status, HANARE_STATUS_STORE_FULL);
}

TEST_P(RemoteStoreTest, ChannelMovesManyBlocks) {
    constexpr size_t kBlocks = 500;
    const uint64_t begin = store->reserve(kBlocks * kBlock).value();
    const auto channel = store->open_channel().value();
    std::vector<std::vector<std::byte>> blocks(kBlocks);
    std::vector<std::vector<std::byte>> seen(kBlocks, std::vector<std::byte>(kBlock));
    for (auto& block : blocks) block = random_block(prng);
    for (const store::IoKind kind : {store::IoKind::kWrite, store::IoKind::kRead}) {
        std::vector<store::IoRequest> requests;
        for (size_t i = 0; i < kBlocks; ++i) {
            requests.push_back(request_for(kind, begin + i * kBlock,
                                           kind == store::IoKind::kWrite ? blocks[i] : seen[i]));
        }
        size_t done = 0;
        size_t refusals = 0;
        const auto take_all = [&] {
            while (store::IoRequest* const request = channel->next_completed()) {
                EXPECT_EQ(request->status, HANARE_STATUS_OK);
                ++done;
            }
        };
        for (store::IoRequest& request : requests) {
            while (!channel->submit(request)) {
                ++refusals;
                channel->flush();
                channel->wait(-1);
                take_all();
            }
        }
        while (done < kBlocks) {
            channel->wait(-1);
            take_all();
        }
        EXPECT_EQ(channel->in_flight(), 0u);
        EXPECT_GT(refusals, 0u);  // the window is smaller
    }
    EXPECT_TRUE(seen == blocks);
}

// How long wait(100) takes.
uint64_t ms_of_a_wait(store::IoChannel& channel) {
    const uint64_t begin_ns = sys::now_ns();
    channel.wait(100);
    return (sys::now_ns() - begin_ns) / 1'000'000;
}

TEST_P(RemoteStoreTest, ChannelSleepsUntilItIsNotified) {
    const auto channel = store->open_channel().value();
    EXPECT_GE(ms_of_a_wait(*channel), 99u);
    channel->notify();
    channel->wait(-1);  // remembered
    EXPECT_GE(ms_of_a_wait(*channel), 99u);
    std::jthread other([&] { channel->notify(); });
    channel->wait(-1);
}

TEST_P(RemoteStoreTest, ChannelWatchesADescriptor) {
    const auto channel = store->open_channel().value();
    auto event = sys::EventFd::open().value();
    channel->watch(event.number());
    EXPECT_GE(ms_of_a_wait(*channel), 99u);
    EXPECT_FALSE(channel->take_watched());
    event.post();
    channel->wait(-1);
    EXPECT_TRUE(channel->take_watched());
    channel->watch(-1);
    EXPECT_GE(ms_of_a_wait(*channel), 99u);
}

TEST_P(RemoteStoreTest, TransfersAreStartedByManyThreads) {
    constexpr size_t kThreads = 4;
    constexpr size_t kEach = 100;
    const uint64_t begin = store->reserve(kThreads * kEach * kBlock).value();
    const auto transfers = store->open_transfers(store::TransferCapacity::kMany);
    ASSERT_NE(transfers, nullptr);
    std::vector<std::vector<std::byte>> blocks(kThreads * kEach);
    for (auto& block : blocks) block = random_block(prng);
    std::vector<std::vector<std::byte>> seen(blocks.size(), std::vector<std::byte>(kBlock));
    for (const store::IoKind kind : {store::IoKind::kWrite, store::IoKind::kRead}) {
        auto& data = kind == store::IoKind::kWrite ? blocks : seen;
        std::vector<store::IoRequest> requests;
        for (size_t i = 0; i < data.size(); ++i) {
            requests.push_back(request_for(kind, begin + i * kBlock, data[i]));
        }
        std::vector<std::jthread> threads;
        for (size_t thread = 0; thread < kThreads; ++thread) {
            threads.emplace_back([&, thread] {
                for (size_t i = 0; i < kEach; ++i) {
                    store::IoRequest* const request = &requests[thread * kEach + i];
                    // As much as there is memory to seal it in.
                    while (transfers->start(&request, 1) == 0) std::this_thread::yield();
                    transfers->has_completed();
                }
            });
        }
        for (size_t done = 0; done < requests.size();) {
            if (store::IoRequest* const request = transfers->next_completed(true)) {
                EXPECT_EQ(request->status, HANARE_STATUS_OK);
                ++done;
            }
        }
        threads.clear();
        EXPECT_EQ(transfers->next_completed(false), nullptr);
    }
    EXPECT_TRUE(seen == blocks);
}

TEST_P(RemoteStoreTest, SingleTransfers) {
    const uint64_t begin = store->reserve(kBlock).value();
    const auto one = store->open_transfers(store::TransferCapacity::kOne);
    ASSERT_NE(one, nullptr);
    std::vector<std::byte> data = random_block(prng);
    std::vector<std::byte> seen(kBlock);
    const auto run = [&](store::IoKind kind, std::vector<std::byte>& memory) {
        store::IoRequest request = request_for(kind, begin, memory);
        store::IoRequest* const pointer = &request;
        ASSERT_EQ(one->start(&pointer, 1), 1u);
        EXPECT_EQ(one->start(&pointer, 1), 0u);
        ASSERT_EQ(one->next_completed(true), &request);
        EXPECT_EQ(request.status, HANARE_STATUS_OK);
    };
    if (GetParam()) {
        // Who waits has what it is sealed in.
        store::IoRequest request = request_for(store::IoKind::kWrite, begin, data);
        store::IoRequest* const pointer = &request;
        EXPECT_EQ(one->start(&pointer, 1), 0u);
        ASSERT_EQ(store->write(begin, data.data(), kBlock), HANARE_STATUS_OK);
    } else {
        run(store::IoKind::kWrite, data);
    }
    run(store::IoKind::kRead, seen);
    EXPECT_TRUE(seen == data);
}

// What a server, or who gets into it, could do.
class SealedStore : public testing::Test {
protected:
    std::unique_ptr<server::MemoryServer> server = start_server(64 * kMiB);
    std::unique_ptr<store::Store> store =
        open_store(server->port(), 0, Server::kTimeoutMs, true).value();
    RemoteStore& remote = dynamic_cast<RemoteStore&>(*store);
    const uint64_t begin = store->reserve(8 * kMiB).value();
    Prng prng{12};
    std::vector<std::byte> first = random_block(prng);
    std::vector<std::byte> second = random_block(prng);
    std::vector<std::byte> seen = std::vector<std::byte>(kBlock);

    void transfer_raw(fabric::Kind kind, uint64_t offset, std::vector<std::byte>& data) {
        const Server::Place place = remote.server().place_of(offset);
        fabric::Operation operation;
        operation.kind = kind;
        operation.capability = place.capability;
        operation.offset = place.offset;
        operation.source = data;
        operation.destination = data;
        remote.server().link(Use::kFaults).post(operation);
        ASSERT_EQ(remote.server().wait(Use::kFaults, operation), HANARE_STATUS_OK);
    }
    std::vector<std::byte> kept_at(uint64_t offset) {
        std::vector<std::byte> data(kBlock);
        transfer_raw(fabric::Kind::kGet, offset, data);
        return data;
    }
    void put_at(uint64_t offset, std::vector<std::byte> data) {
        transfer_raw(fabric::Kind::kPut, offset, data);
    }
    hanare_status write(uint64_t offset, const std::vector<std::byte>& data) {
        return store->write(offset, data.data(), data.size());
    }
    hanare_status read(uint64_t offset) { return store->read(offset, seen.data(), seen.size()); }
};

TEST_F(SealedStore, ShowsNothing) {
    const std::vector<std::byte> ones(kBlock, std::byte{1});
    ASSERT_EQ(write(begin, ones), HANARE_STATUS_OK);
    ASSERT_EQ(write(begin + kBlock, ones), HANARE_STATUS_OK);
    const std::vector<std::byte> one = kept_at(begin);
    EXPECT_LT(std::ranges::count(one, std::byte{1}), static_cast<ptrdiff_t>(kBlock / 64));
    EXPECT_FALSE(one == kept_at(begin + kBlock));
    // Nor whether it is the same as before.
    ASSERT_EQ(write(begin, ones), HANARE_STATUS_OK);
    EXPECT_FALSE(one == kept_at(begin));
}

TEST_F(SealedStore, RefusesWhatWasChanged) {
    ASSERT_EQ(write(begin, first), HANARE_STATUS_OK);
    std::vector<std::byte> kept = kept_at(begin);
    kept[kBlock - 1] ^= std::byte{1};
    put_at(begin, kept);
    EXPECT_EQ(read(begin), HANARE_STATUS_CORRUPT);
    kept[kBlock - 1] ^= std::byte{1};
    put_at(begin, kept);
    EXPECT_EQ(read(begin), HANARE_STATUS_OK);
    EXPECT_TRUE(seen == first);
}

TEST_F(SealedStore, RefusesWhatWasThereBefore) {
    ASSERT_EQ(write(begin, first), HANARE_STATUS_OK);
    const std::vector<std::byte> old = kept_at(begin);
    ASSERT_EQ(write(begin, second), HANARE_STATUS_OK);
    EXPECT_EQ(read(begin), HANARE_STATUS_OK);
    EXPECT_TRUE(seen == second);
    put_at(begin, old);
    EXPECT_EQ(read(begin), HANARE_STATUS_CORRUPT);
}

TEST_F(SealedStore, RefusesWhatBelongsElsewhere) {
    ASSERT_EQ(write(begin, first), HANARE_STATUS_OK);
    ASSERT_EQ(write(begin + kBlock, second), HANARE_STATUS_OK);
    const std::vector<std::byte> one = kept_at(begin);
    const std::vector<std::byte> other = kept_at(begin + kBlock);
    put_at(begin, other);
    put_at(begin + kBlock, one);
    EXPECT_EQ(read(begin), HANARE_STATUS_CORRUPT);
    EXPECT_EQ(read(begin + kBlock), HANARE_STATUS_CORRUPT);
}

TEST(RemoteServer, IsNone) {
    const auto nobody = open_store(1);
    ASSERT_FALSE(nobody);
    EXPECT_EQ(nobody.error().status, HANARE_STATUS_STORE_UNAVAILABLE);
}

TEST(RemoteServer, ThatDiesIsLost) {
    test::ServerProcess process(64 * kMiB);
    const auto store = open_store(process.port()).value();
    const auto channel = store->open_channel().value();
    const uint64_t begin = store->reserve(8 * kMiB).value();
    std::vector<std::byte> data(kBlock);
    ASSERT_EQ(store->write(begin, data.data(), kBlock), HANARE_STATUS_OK);
    EXPECT_EQ(store->trouble(), nullptr);
    process.kill();
    EXPECT_EQ(store->read(begin, data.data(), kBlock), HANARE_STATUS_STORE_IO);
    ASSERT_NE(store->trouble(), nullptr);
    EXPECT_NE(std::strstr(store->trouble(), "ended the connection"), nullptr);
    store::IoRequest request = request_for(store::IoKind::kWrite, begin, data);
    ASSERT_TRUE(channel->submit(request));
    while (channel->next_completed() == nullptr) channel->wait(-1);
    EXPECT_EQ(request.status, HANARE_STATUS_STORE_IO);
    // Another one that comes in its place is not taken for it.
    const test::ServerProcess other(64 * kMiB, process.port());
    EXPECT_EQ(store->read(begin, data.data(), kBlock), HANARE_STATUS_STORE_IO);
    EXPECT_FALSE(store->reserve(8 * kMiB));
}

// The keeper, which has nothing under way, notices, and goes on sleeping.
TEST(RemoteServer, ThatDiesIsNoticedByWhoSleeps) {
    test::ServerProcess process(64 * kMiB);
    const auto store = open_store(process.port()).value();
    const auto channel = store->open_channel().value();
    process.kill();
    const uint64_t end_ns = sys::now_ns() + 10'000'000'000;
    while (store->trouble() == nullptr && sys::now_ns() < end_ns) channel->wait(100);
    EXPECT_NE(store->trouble(), nullptr);
    EXPECT_GE(ms_of_a_wait(*channel), 99u);
    channel->notify();
    channel->wait(-1);
}

// What was started and left alone for longer than the limit is none of the server's fault.
TEST(RemoteServer, IsNotLostWhileNobodyLooks) {
    constexpr int kTimeoutMs = 150;
    constexpr size_t kBytes = 4 * kMiB;
    const test::ServerProcess process(128 * kMiB);
    const auto store = open_store(process.port(), 0, kTimeoutMs).value();
    const uint64_t begin = store->reserve(16 * kBytes).value();
    const auto transfers = store->open_transfers(store::TransferCapacity::kMany);
    const auto channel = store->open_channel().value();
    Prng prng(5);
    std::vector<std::byte> data = random_block(prng, kBytes);
    ASSERT_EQ(store->write(begin, data.data(), kBytes), HANARE_STATUS_OK);
    std::vector<std::byte> seen(kBytes);
    std::vector<std::byte> other(kBytes);
    store::IoRequest read = request_for(store::IoKind::kRead, begin, seen);
    store::IoRequest again = request_for(store::IoKind::kRead, begin, other);
    store::IoRequest* const pointer = &read;
    ASSERT_EQ(transfers->start(&pointer, 1), 1u);
    ASSERT_TRUE(channel->submit(again));
    std::this_thread::sleep_for(std::chrono::milliseconds(5 * kTimeoutMs));
    while (transfers->next_completed(true) == nullptr) {
    }
    while (channel->next_completed() == nullptr) channel->wait(-1);
    EXPECT_EQ(read.status, HANARE_STATUS_OK);
    EXPECT_EQ(again.status, HANARE_STATUS_OK);
    EXPECT_TRUE(seen == data);
    EXPECT_TRUE(other == data);
    EXPECT_EQ(store->trouble(), nullptr);
}

TEST(RemoteServer, ThatIsSilentIsLost) {
    constexpr int kTimeoutMs = 400;
    test::ServerProcess process(64 * kMiB);
    const auto store = open_store(process.port(), 0, kTimeoutMs).value();
    const auto channel = store->open_channel().value();
    const uint64_t begin = store->reserve(8 * kMiB).value();
    process.send(SIGSTOP);
    std::vector<std::byte> data(kBlock);
    store::IoRequest request = request_for(store::IoKind::kRead, begin, data);
    const uint64_t begin_ns = sys::now_ns();
    ASSERT_TRUE(channel->submit(request));
    while (channel->next_completed() == nullptr) channel->wait(-1);
    EXPECT_EQ(request.status, HANARE_STATUS_STORE_IO);
    EXPECT_GE(sys::now_ns() - begin_ns, uint64_t{kTimeoutMs} * 1'000'000);
    EXPECT_LT(sys::now_ns() - begin_ns, 10'000'000'000u);
    ASSERT_NE(store->trouble(), nullptr);
    EXPECT_NE(std::strstr(store->trouble(), "has not answered"), nullptr);
    // What it says later is not heard.
    process.send(SIGCONT);
    EXPECT_EQ(store->read(begin, data.data(), kBlock), HANARE_STATUS_STORE_IO);
}

}  // namespace
}  // namespace hanare::remote
