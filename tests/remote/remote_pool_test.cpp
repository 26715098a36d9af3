// SPDX-License-Identifier: Apache-2.0
//
// Pools of the C API whose store is a memory server.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "api/far_pool.hpp"
#include "api/scenario.hpp"
#include "base/prng.hpp"
#include "remote/server_process.hpp"
#include "server/memory_server.hpp"

namespace hanare::api_test {
namespace {

using test::ServerProcess;

constexpr uint64_t kLocalBytes = 16 * kMiB;
constexpr uint64_t kRegionBytes = 96 * kMiB;
constexpr uint64_t kWords = kRegionBytes / sizeof(uint64_t);

PoolConfig config_of(const std::string& store, const std::string& engine = "sigbus-move") {
    PoolConfig config;
    config.engine = engine;
    config.store = store;
    config.options.local_bytes = kLocalBytes;
    config.options.block_bytes = 64 * kKiB;
    return config;
}

uint64_t word_at(uint64_t seed, uint64_t index) {
    return (index + seed) * 0x9e3779b97f4a7c15u ^ (index >> 7);
}

void fill(uint64_t* words, uint64_t seed) {
    for (uint64_t i = 0; i < kWords; ++i) words[i] = word_at(seed, i);
}

uint64_t wrong_words(const uint64_t* words, uint64_t seed) {
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < kWords; ++i) wrong += words[i] != word_at(seed, i);
    return wrong;
}

class RemotePool : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Engines, RemotePool,
                         testing::Values("sigbus-move", "sigbus-copy", "segv-remap"),
                         [](const auto& each) {
                             std::string name = each.param;
                             std::ranges::replace(name, '-', '_');
                             return name;
                         });

TEST_P(RemotePool, StreamsAreRight) {
    const ServerProcess server(256 * kMiB);
    FarPool pool(config_of(server.spec(), GetParam()));
    uint64_t* const words = pool.alloc_words(kRegionBytes);
    for (uint64_t seed = 1; seed <= 2; ++seed) {
        fill(words, seed);
        EXPECT_EQ(wrong_words(words, seed), 0u);
    }
    const hanare_counters counters = pool.stats();
    EXPECT_GT(counters.read_bytes, kRegionBytes);
    EXPECT_GT(counters.written_bytes, kRegionBytes);
}

TEST_P(RemotePool, RandomAccessesAreRight) {
    const ServerProcess server(256 * kMiB);
    FarPool pool(config_of(server.spec(), GetParam()));
    uint64_t* const words = pool.alloc_words(kRegionBytes);
    fill(words, 5);
    constexpr int kThreads = 2;
    std::atomic<uint64_t> wrong = 0;
    {
        std::vector<std::jthread> threads;
        for (int thread = 0; thread < kThreads; ++thread) {
            threads.emplace_back([&, thread] {
                Prng prng(static_cast<uint64_t>(thread) + 1);
                for (int i = 0; i < 6000; ++i) {
                    // Each thread has words of its own.
                    const uint64_t at =
                        prng.below(kWords / kThreads) * kThreads + static_cast<uint64_t>(thread);
                    std::atomic_ref word(words[at]);
                    if (word.load(std::memory_order_relaxed) != word_at(5, at)) ++wrong;
                    word.store(word_at(5, at), std::memory_order_relaxed);
                }
            });
        }
    }
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(wrong_words(words, 5), 0u);
}

TEST(RemotePoolTest, TwoPoolsShareAServer) {
    const ServerProcess server(256 * kMiB);
    FarPool one(config_of(server.spec()));
    FarPool two(config_of(server.spec()));
    uint64_t* const first = one.alloc_words(kRegionBytes);
    uint64_t* const second = two.alloc_words(kRegionBytes);
    fill(first, 1);
    fill(second, 2);
    EXPECT_EQ(wrong_words(first, 1), 0u);
    EXPECT_EQ(wrong_words(second, 2), 0u);
}

TEST(RemotePoolTest, FullServerIsAnErrorOfTheAllocation) {
    const ServerProcess server(64 * kMiB);
    FarPool pool(config_of(server.spec()));
    void* address = nullptr;
    EXPECT_EQ(hanare_alloc(pool.get(), kRegionBytes, nullptr, &address), HANARE_STATUS_STORE_FULL);
    EXPECT_NE(last_error().find("memory server tcp://"), std::string::npos) << last_error();
    EXPECT_NE(pool.alloc(32 * kMiB), nullptr);
}

TEST(RemotePoolTest, NobodyThereIsAnErrorOfTheOpening) {
    PoolConfig config = config_of("tcp://127.0.0.1:1");
    hanare_pool* pool = nullptr;
    EXPECT_EQ(hanare_pool_open(config.c_options(), &pool), HANARE_STATUS_STORE_UNAVAILABLE);
    EXPECT_NE(last_error().find("tcp://127.0.0.1:1"), std::string::npos) << last_error();
}

// Reads all of a region whose server is gone.
API_TEST_SCENARIO(server_dies) {
    std::signal(SIGBUS, SIG_DFL);
    ServerProcess server(256 * kMiB);
    setenv("HANARE_SERVER_TIMEOUT_MS", "500", 1);
    FarPool pool(config_of(server.spec()));
    uint64_t* const words = pool.alloc_words(kRegionBytes);
    fill(words, 3);
    if (arguments[0] == "kill") {
        server.kill();
    } else {
        server.send(SIGSTOP);
    }
    SCENARIO_CHECK(wrong_words(words, 3) == 0);  // dies here
    return 0;
}

TEST(RemotePoolTest, LostServerEndsInOneLine) {
    for (const auto& [how, why] : {std::pair{"kill", "has ended the connection"},
                                   std::pair{"stop", "has not answered for 500 ms"}}) {
        const Outcome outcome = run_scenario("server_dies", {how});
        EXPECT_TRUE(outcome.died_of(SIGBUS)) << outcome.describe();
        ASSERT_EQ(outcome.lines().size(), 1u) << outcome.errors;
        EXPECT_NE(outcome.errors.find("memory server tcp://"), std::string::npos) << outcome.errors;
        EXPECT_NE(outcome.errors.find(why), std::string::npos) << outcome.errors;
    }
}

// Also one that nobody has asked for memory yet: a child keeps no connection of its parent's.
TEST(RemotePoolTest, ChildKeepsNoLease) {
    for (const bool has_region : {false, true}) {
        auto server = server::MemoryServer::open({.memory_bytes = 128 * kMiB}).value();
        ASSERT_TRUE(server->start());
        const std::string spec = "tcp://127.0.0.1:" + std::to_string(server->port());
        int ends[2];
        ASSERT_EQ(pipe(ends), 0);
        const pid_t parent = fork();
        if (parent == 0) {
            FarPool pool(config_of(spec));
            if (has_region) pool.alloc(32 * kMiB);
            const pid_t child = fork();
            if (child == 0) {
                // Outlives its parent, until the test says so.
                char end;
                close(ends[1]);
                _exit(read(ends[0], &end, 1) == 0 ? 0 : 1);
            }
            kill(getpid(), SIGKILL);
        }
        close(ends[0]);
        EXPECT_EQ(waitpid(parent, nullptr, 0), parent);
        EXPECT_TRUE(eventually([&] { return server->status().leases.empty(); })) << has_region;
        EXPECT_EQ(server->status().leases_opened, 1u);
        close(ends[1]);
    }
}

TEST(RemotePoolTest, PinSaysWhichServerIsLost) {
    ServerProcess server(256 * kMiB);
    FarPool pool(config_of(server.spec()));
    uint64_t* const words = pool.alloc_words(kRegionBytes);
    fill(words, 4);
    server.kill();
    // The first block has long been evicted.
    EXPECT_EQ(hanare_pin(pool.get(), words, 4096, HANARE_ACCESS_READ), HANARE_STATUS_STORE_IO);
    EXPECT_NE(last_error().find("cannot pin 4096 bytes"), std::string::npos) << last_error();
    EXPECT_NE(last_error().find("memory server " + server.spec()), std::string::npos)
        << last_error();
}

TEST(RemotePoolTest, FlushSaysWhatIsWrong) {
    ServerProcess server(256 * kMiB);
    FarPool pool(config_of(server.spec()));
    uint64_t* const words = pool.alloc_words(8 * kMiB);
    words[0] = 1;
    server.kill();
    EXPECT_EQ(hanare_flush(pool.get(), nullptr, 0), HANARE_STATUS_STORE_IO);
    EXPECT_NE(last_error().find("memory server tcp://"), std::string::npos) << last_error();
    EXPECT_EQ(words[0], 1u);
}

}  // namespace
}  // namespace hanare::api_test
