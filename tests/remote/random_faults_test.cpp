// SPDX-License-Identifier: Apache-2.0
//
// Programs whose memory server fails at a random moment, in a random way.  Without redundancy they
// end in one line and SIGBUS, or have nothing to do with it; with redundancy they go on.  They
// never see wrong data, and never hang.  HANARE_TEST_RUNS says how many; seeds are printed,
// HANARE_TEST_SEED repeats one.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "api/far_pool.hpp"
#include "api/scenario.hpp"
#include "base/prng.hpp"
#include "remote/server_process.hpp"
#include "sys/clock.hpp"

namespace hanare::api_test {
namespace {

using test::ServerProcess;

constexpr uint64_t kRegionBytes = 40 * kMiB;
constexpr uint64_t kWords = kRegionBytes / sizeof(uint64_t);
constexpr uint64_t kPageWords = 512;
constexpr int kServerTimeoutMs = 400;

// What a page holds follows from how often it was written.
uint64_t word_of(uint64_t index, uint32_t version) {
    return version == 0 ? 0 : index * 0x9e3779b97f4a7c15u + version;
}

class Checked {
public:
    Checked(FarPool& pool, uint64_t seed)
        : words_(pool.alloc_words(kRegionBytes)), versions_(kWords / kPageWords), prng_(seed) {}

    void write(uint64_t page) {
        const uint32_t version = ++versions_[page];
        for (uint64_t i = page * kPageWords; i < (page + 1) * kPageWords; ++i) {
            words_[i] = word_of(i, version);
        }
    }
    bool is_right(uint64_t page) const {
        for (uint64_t i = page * kPageWords; i < (page + 1) * kPageWords; ++i) {
            if (words_[i] != word_of(i, versions_[page])) return false;
        }
        return true;
    }
    bool run() {
        for (uint64_t page = 0; page < pages(); ++page) write(page);
        for (int i = 0; i < 12000; ++i) {
            note_time();
            const uint64_t page = prng_.below(pages());
            if (prng_.below(2) == 0) {
                write(page);
            } else if (!is_right(page)) {
                return false;
            }
        }
        for (uint64_t page = 0; page < pages(); ++page) {
            if (!is_right(page)) return false;
        }
        return true;
    }

    uint64_t longest_stall_ms() const { return longest_ns_ / 1'000'000; }

private:
    uint64_t pages() const { return versions_.size(); }
    void note_time() {
        const uint64_t now_ns = sys::now_ns();
        if (noted_ns_ != 0) longest_ns_ = std::max(longest_ns_, now_ns - noted_ns_);
        noted_ns_ = now_ns;
    }

    uint64_t* words_;
    std::vector<uint32_t> versions_;
    Prng prng_;
    uint64_t noted_ns_ = 0;
    uint64_t longest_ns_ = 0;
};

API_TEST_SCENARIO(faulty_run) {
    std::signal(SIGBUS, SIG_DFL);
    setenv("HANARE_SERVER_TIMEOUT_MS", std::to_string(kServerTimeoutMs).c_str(), 1);
    PoolConfig config;
    config.store = arguments[0];
    config.options.local_bytes = 8 * kMiB;
    config.options.block_bytes = 64 * kKiB;
    try {
        FarPool pool(config);
        Checked memory(pool, std::stoull(arguments[1]));
        SCENARIO_CHECK(memory.run());
        if (arguments.size() > 2) {
            std::fprintf(stderr, "stall %llu\n",
                         static_cast<unsigned long long>(memory.longest_stall_ms()));
        }
        return 0;
    } catch (const std::runtime_error& error) {
        std::fprintf(stderr, "cannot open: %s\n", error.what());
        return 3;
    }
}

uint64_t setting(const char* name, uint64_t otherwise) {
    const char* const text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

enum class Fault { kNone, kKilled, kStopped, kPaused, kReplaced };
const char* name_of(Fault fault) {
    constexpr const char* kNames[] = {"none", "killed", "stopped", "paused", "replaced"};
    return kNames[static_cast<int>(fault)];
}

void wait_ms(uint64_t ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

void strike(Fault fault, ServerProcess& server, std::optional<ServerProcess>& other) {
    switch (fault) {
        case Fault::kNone: break;
        case Fault::kKilled: server.kill(); break;
        case Fault::kStopped: server.send(SIGSTOP); break;
        case Fault::kPaused:
            server.send(SIGSTOP);
            wait_ms(kServerTimeoutMs / 4);
            server.send(SIGCONT);
            break;
        case Fault::kReplaced:
            server.kill();
            other.emplace(128 * kMiB, server.port());
            break;
    }
}

TEST(RandomFaults, EndInOneLineOrNotAtAll) {
    const uint64_t runs = setting("HANARE_TEST_RUNS", 10);
    uint64_t seed = setting("HANARE_TEST_SEED", std::random_device()());
    uint64_t survived = 0;
    for (uint64_t run = 0; run < runs; ++run, ++seed) {
        std::printf("HANARE_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
        Prng prng(seed);
        const auto fault = static_cast<Fault>(prng.below(5));
        const uint64_t after_ms = prng.below(900);
        ServerProcess server(128 * kMiB);
        std::optional<ServerProcess> other;
        Outcome outcome;
        {
            std::jthread program([&] {
                outcome = run_scenario("faulty_run", {server.spec(), std::to_string(seed)});
            });
            wait_ms(after_ms);
            strike(fault, server, other);
        }
        const std::string what = std::string(name_of(fault)) + " after " +
                                 std::to_string(after_ms) + " ms: " + outcome.describe() + "\n" +
                                 outcome.errors;
        if (outcome.exited_with(0)) {
            ++survived;
            EXPECT_TRUE(outcome.errors.empty()) << what;
            continue;
        }
        // Or it could not be opened any more.
        EXPECT_TRUE(outcome.died_of(SIGBUS) || outcome.exited_with(3)) << what;
        EXPECT_TRUE(fault != Fault::kNone && fault != Fault::kPaused) << what;
        EXPECT_EQ(outcome.lines().size(), 1u) << what;
        EXPECT_NE(outcome.errors.find("memory server tcp://"), std::string::npos) << what;
    }
    std::printf("%llu of %llu programs came to their end\n",
                static_cast<unsigned long long>(survived), static_cast<unsigned long long>(runs));
}

struct Redundancy {
    const char* before;
    size_t servers;
};
constexpr Redundancy kRedundancies[] = {
    {"mirror(", 2}, {"mirror(", 3}, {"parity(2+1;", 3}, {"parity(4+1;", 5}, {"parity(2+1;", 4}};

std::string spec_of(const Redundancy& redundancy,
                    const std::vector<std::unique_ptr<ServerProcess>>& servers) {
    std::string spec;
    for (const auto& server : servers) spec += (spec.empty() ? "" : ",") + server->spec();
    return redundancy.before + spec + ")";
}

uint64_t stall_ms_of(const Outcome& outcome) {
    const size_t at = outcome.errors.find("stall ");
    return at == std::string::npos ? UINT64_MAX : std::stoull(outcome.errors.substr(at + 6));
}

TEST(RandomFaults, AreSurvivedWithRedundancy) {
    // On a machine that does nothing else it is far below.
    constexpr uint64_t kStall_ms = 5000;
    const uint64_t runs = setting("HANARE_TEST_RUNS", 10);
    uint64_t seed = setting("HANARE_TEST_SEED", std::random_device()());
    uint64_t longest_of_killed_ms = 0;
    for (uint64_t run = 0; run < runs; ++run, ++seed) {
        std::printf("HANARE_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
        Prng prng(seed);
        const auto fault = static_cast<Fault>(prng.below(5));
        const Redundancy& redundancy = kRedundancies[prng.below(std::size(kRedundancies))];
        const uint64_t after_ms = prng.below(900);
        std::vector<std::unique_ptr<ServerProcess>> servers;
        while (servers.size() < redundancy.servers) {
            servers.push_back(std::make_unique<ServerProcess>(128 * kMiB));
        }
        std::optional<ServerProcess> other;
        Outcome outcome;
        const std::string spec = spec_of(redundancy, servers);
        {
            std::jthread program([&] {
                outcome = run_scenario("faulty_run", {spec, std::to_string(seed), "stall"});
            });
            wait_ms(after_ms);
            strike(fault, *servers[prng.below(servers.size())], other);
        }
        const std::string what = std::string(name_of(fault)) + " after " +
                                 std::to_string(after_ms) + " ms, " + spec + ": " +
                                 outcome.describe() + "\n" + outcome.errors;
        // It may have come too early, so that the pool could not be opened.
        if (outcome.exited_with(3)) {
            EXPECT_TRUE(fault != Fault::kNone && after_ms < 200) << what;
            continue;
        }
        EXPECT_TRUE(outcome.exited_with(0)) << what;
        EXPECT_LT(stall_ms_of(outcome), kStall_ms) << what;
        if (fault == Fault::kKilled) {
            longest_of_killed_ms = std::max(longest_of_killed_ms, stall_ms_of(outcome));
        }
    }
    std::printf("the longest stall after a server was killed: %llu ms\n",
                static_cast<unsigned long long>(longest_of_killed_ms));
}

}  // namespace
}  // namespace hanare::api_test
