// SPDX-License-Identifier: Apache-2.0
//
// Programs between which and their memory server somebody changes what passes, and clients that are
// killed while they write.  Plain: the checksums of the pool tell; sealed: the seals of the blocks.
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "api/far_pool.hpp"
#include "api/scenario.hpp"
#include "remote/relay.hpp"
#include "remote/server_process.hpp"
#include "server/memory_server.hpp"
#include "sys/test_support.hpp"

namespace hanare::api_test {
namespace {

using test::Relay;
using test::ServerProcess;
using Harm = Relay::Harm;

constexpr uint64_t kLocalBytes = 8 * kMiB;
constexpr uint64_t kRegionBytes = 32 * kMiB;
constexpr uint64_t kWords = kRegionBytes / sizeof(uint64_t);

uint64_t word_at(uint64_t seed, uint64_t index) {
    return (index + seed) * 0x9e3779b97f4a7c15u ^ (index >> 7);
}

PoolConfig config_of(const std::string& store) {
    PoolConfig config;
    config.store = store;
    config.options.local_bytes = kLocalBytes;
    config.options.block_bytes = 64 * kKiB;
    return config;
}

// Writes all and reads all, with other data each time: store, secret's file or nothing.
API_TEST_SCENARIO(write_and_read_twice) {
    std::signal(SIGBUS, SIG_DFL);
    setenv("HANARE_SERVER_TIMEOUT_MS", "2000", 1);
    if (arguments.size() > 1) setenv("HANARE_SECRET_FILE", arguments[1].c_str(), 1);
    FarPool pool(config_of(arguments[0]));
    uint64_t* const words = pool.alloc_words(kRegionBytes);
    for (uint64_t seed = 1; seed <= 2; ++seed) {
        for (uint64_t i = 0; i < kWords; ++i) words[i] = word_at(seed, i);
        for (uint64_t i = 0; i < kWords; ++i) SCENARIO_CHECK(words[i] == word_at(seed, i));
    }
    return 0;
}

enum class Ending {
    kAsEver,  // with the right result
    kLine,    // one line, with `why`, and SIGBUS
    kEither,  // what was read ahead is read once more, and what harmed it is over
};

struct HarmCase {
    Harm harm;
    bool is_sealed;
    uint32_t times;
    Ending ending;
    const char* why;
};

class HarmedAnswers : public testing::TestWithParam<HarmCase> {
protected:
    HarmedAnswers() {
        if (!GetParam().is_sealed) return;
        secret = fabric::Secret::make().value();
        umask(077);
        std::ofstream(file) << secret->text();
    }
    ~HarmedAnswers() override { unlink(file.c_str()); }

    const sys::testing::TemporaryDirectory directory;
    const std::string file = directory.path() + "/secret";
    std::optional<fabric::Secret> secret;
};

constexpr const char* kSilent = "has not answered for 2000 ms";
constexpr const char* kServer = "memory server tcp://";
constexpr const char* kDifferent = "different from what was written";
std::string name_of(const testing::TestParamInfo<HarmCase>& each) {
    constexpr const char* kNames[] = {"nothing", "changed", "replayed", "silence"};
    return std::string(kNames[static_cast<int>(each.param.harm)]) +
           (each.param.is_sealed ? "_sealed" : "_plain") +
           (each.param.times > 1 ? "_from_then_on" : "");
}

constexpr HarmCase kCases[] = {
    {Harm::kNone, false, 0, Ending::kAsEver, ""},
    {Harm::kNone, true, 0, Ending::kAsEver, ""},
    {Harm::kChange, false, 1, Ending::kEither, kDifferent},
    {Harm::kChange, false, UINT32_MAX, Ending::kLine, kDifferent},
    {Harm::kChange, true, 1, Ending::kEither, kDifferent},
    {Harm::kChange, true, UINT32_MAX, Ending::kLine, kDifferent},
    {Harm::kReplay, false, 1, Ending::kEither, kDifferent},
    {Harm::kReplay, false, UINT32_MAX, Ending::kLine, kDifferent},
    {Harm::kReplay, true, 1, Ending::kEither, kDifferent},
    {Harm::kReplay, true, UINT32_MAX, Ending::kLine, kDifferent},
    {Harm::kSilence, false, 1, Ending::kLine, kSilent},
    {Harm::kSilence, true, 1, Ending::kLine, kSilent},
};
INSTANTIATE_TEST_SUITE_P(All, HarmedAnswers, testing::ValuesIn(kCases), name_of);

// What was read first comes again in the last third, when all has been written once more.
TEST_P(HarmedAnswers, AreNeverTakenForData) {
    const HarmCase& given = GetParam();
    const ServerProcess server(128 * kMiB, 0, secret);
    const Relay relay(server.port(), given.harm, kRegionBytes * 9 / 4, given.times);
    std::vector<std::string> arguments = {relay.spec()};
    if (secret) arguments.push_back(file);
    const Outcome outcome = run_scenario("write_and_read_twice", arguments);
    const std::string what = outcome.describe() + "\n" + outcome.errors;
    EXPECT_EQ(relay.has_harmed(), given.harm != Harm::kNone) << what;
    if (given.ending != Ending::kLine && outcome.exited_with(0)) {
        EXPECT_EQ(outcome.errors, "");
        return;
    }
    EXPECT_NE(given.ending, Ending::kAsEver) << what;
    EXPECT_TRUE(outcome.died_of(SIGBUS)) << what;
    ASSERT_EQ(outcome.lines().size(), 1u) << what;
    // It may have been the head of an answer.
    const bool is_head = outcome.errors.find(kServer) != std::string::npos;
    EXPECT_TRUE(is_head || outcome.errors.find(given.why) != std::string::npos) << what;
}

// Its memory is another's in time, who sees nothing of it.
TEST(KilledClients, LeaveTheirMemoryWipedToOthers) {
    auto server = server::MemoryServer::open({.memory_bytes = 128 * kMiB}).value();
    ASSERT_TRUE(server->start());
    const std::string spec = "tcp://127.0.0.1:" + std::to_string(server->port());
    for (int turn = 0; turn < 3; ++turn) {
        int ends[2];
        ASSERT_EQ(pipe(ends), 0);
        const pid_t writer = fork();
        if (writer == 0) {
            close(ends[0]);
            FarPool pool(config_of(spec));
            uint64_t* const words = pool.alloc_words(96 * kMiB);
            for (uint64_t seed = 1;; ++seed) {
                for (uint64_t i = 0; i < 96 * kMiB / sizeof(uint64_t); ++i) words[i] = seed + i;
                if (write(ends[1], "x", 1) != 1) _exit(1);
            }
        }
        close(ends[1]);
        // It is in its second turn or later.
        char byte;
        ASSERT_EQ(read(ends[0], &byte, 1), 1);
        EXPECT_EQ(kill(writer, SIGKILL), 0);
        int status = 0;
        ASSERT_EQ(waitpid(writer, &status, 0), writer);
        EXPECT_TRUE(WIFSIGNALED(status)) << status;
        close(ends[0]);
        EXPECT_TRUE(eventually([&] { return server->status().leases.empty(); }));
        EXPECT_TRUE(eventually([&] { return server->status().free_bytes == 128 * kMiB; }));
        {
            FarPool pool(config_of(spec));
            const uint64_t* const words = pool.alloc_words(96 * kMiB);
            const uint64_t count = 96 * kMiB / sizeof(uint64_t);
            for (uint64_t i = 0; i < count; i += 512) ASSERT_EQ(words[i], 0u);
        }
        EXPECT_TRUE(eventually([&] { return server->status().free_bytes == 128 * kMiB; }));
    }
    EXPECT_EQ(server->status().leases_abandoned, 3u);
}

// The wrong secret is an error of the opening that says what to look at.
TEST(WrongSecret, IsAnErrorOfTheOpening) {
    const sys::testing::TemporaryDirectory directory;
    const std::string file = directory.path() + "/secret";
    umask(077);
    std::ofstream(file) << fabric::Secret::make().value().text();
    setenv("HANARE_SECRET_FILE", file.c_str(), 1);
    const ServerProcess server(64 * kMiB, 0, fabric::Secret::make().value());
    PoolConfig config = config_of(server.spec());
    hanare_pool* pool = nullptr;
    EXPECT_EQ(hanare_pool_open(config.c_options(), &pool), HANARE_STATUS_STORE_UNAVAILABLE);
    EXPECT_NE(last_error().find("secret_file"), std::string::npos) << last_error();
    EXPECT_NE(last_error().find(server.spec()), std::string::npos) << last_error();
    unsetenv("HANARE_SECRET_FILE");
    unlink(file.c_str());
}

}  // namespace
}  // namespace hanare::api_test
