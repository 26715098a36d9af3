// SPDX-License-Identifier: Apache-2.0
//
// fork(): the child may exec or _exit.  If it touches far memory, absent or present, it dies with
// one line; it never sees zeros or the parent's memory change under it, and the parent is unharmed.
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "api/far_pool.hpp"
#include "api/scenario.hpp"

namespace hanare::api_test {

namespace {

constexpr uint64_t kBlock = 16 * kKiB;
constexpr uint64_t kBlocks = 64;
constexpr uint64_t kBytes = kBlocks * kBlock;

int wait_for(pid_t child) {
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

// The wait status of a child that runs `body` and then exits with its result.
int in_child(const std::function<int()>& body) {
    const pid_t child = fork();
    if (child == 0) _exit(body());
    return wait_for(child);
}

bool died_of_sigbus(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS; }
bool exited_well(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }

API_TEST_SCENARIO(fork_children) {
    std::signal(SIGBUS, SIG_DFL);
    FarPool pool({arguments[0].c_str(), kBlock}, kFramesMin + 8, kBytes, 4);
    std::byte* const region = pool.alloc(kBytes);
    auto* const words = reinterpret_cast<uint64_t*>(region);
    fill(words, kBytes, 1);
    pool.make_absent(region, kBytes / 2);
    touch(region, kBlock, kBlocks - 1);
    const std::string& what = arguments[1];
    if (what == "absent") {
        SCENARIO_CHECK(died_of_sigbus(in_child([&] { return touch(region, kBlock, 0) != 1; })));
    } else if (what == "present") {
        SCENARIO_CHECK(
            died_of_sigbus(in_child([&] { return touch(region, kBlock, kBlocks - 1) != 1; })));
    } else if (what == "write") {
        SCENARIO_CHECK(died_of_sigbus(in_child([&] {
            poke(region, kBlock, kBlocks - 1, 7);
            return 0;
        })));
    } else {
        SCENARIO_CHECK(died_of_sigbus(in_child([&] {  // a grandchild is no better off
            return died_of_sigbus(in_child([&] { return touch(region, kBlock, 0) != 1; }))
                       ? raise(SIGBUS)
                       : 1;
        })));
    }
    SCENARIO_CHECK(mismatches(words, kBytes, 1) == 0);
    return 0;
}

class ForkTest : public EngineTest {};
API_TEST_WITH_ENGINES(ForkTest);

TEST_P(ForkTest, AChildThatTouchesFarMemoryDiesWithOneLine) {
    for (const char* what : {"absent", "present", "write", "grandchild"}) {
        const Outcome outcome = run_scenario("fork_children", {GetParam(), what});
        EXPECT_TRUE(outcome.exited_with(0)) << what << ": " << outcome.describe();
        ASSERT_EQ(outcome.lines().size(), 1u) << what << ": " << outcome.errors;
        EXPECT_NE(outcome.errors.find("touched far memory of its parent"), std::string::npos);
        EXPECT_NE(outcome.errors.find("not inherited through fork"), std::string::npos);
    }
}

bool is_forked(hanare_status status) {
    return fails_with(HANARE_STATUS_FORKED, {"not inherited through fork()"}, status);
}

TEST_P(ForkTest, TheApiTurnsAChildAway) {
    FarPool pool(setup(kBlock), kFramesMin, kBytes);
    std::byte* const region = pool.alloc(kBytes);
    poke(region, kBlock, 0, 1);
    const int status = in_child([&] {
        hanare_counters counters = {};
        counters.struct_size = sizeof counters;
        hanare_pool* opened = nullptr;
        void* address = nullptr;
        const bool all = is_forked(hanare_alloc(pool.get(), kBlock, nullptr, &address)) &&
                         is_forked(hanare_free(pool.get(), region)) &&
                         is_forked(hanare_advise(pool.get(), region, 1, HANARE_ADVICE_DONTNEED)) &&
                         is_forked(hanare_prefetch(pool.get(), region, 1)) &&
                         is_forked(hanare_pin(pool.get(), region, 1, HANARE_ACCESS_READ)) &&
                         is_forked(hanare_unpin(pool.get(), region, 1)) &&
                         is_forked(hanare_flush(pool.get(), nullptr, 0)) &&
                         is_forked(hanare_stats(pool.get(), nullptr, &counters)) &&
                         is_forked(hanare_pool_close(pool.get())) &&
                         is_forked(hanare_pool_open(nullptr, &opened));
        return all ? 0 : 1;
    });
    EXPECT_TRUE(exited_well(status)) << status;
    EXPECT_EQ(touch(region, kBlock, 0), 1u);
}

TEST_P(ForkTest, ChildrenThatExecAreFine) {
    FarPool pool(setup(kBlock), kFramesMin, kBytes);
    uint64_t* const words = pool.alloc_words(kBytes);
    fill(words, kBytes, 1);
    EXPECT_TRUE(exited_well(in_child([] {
        execl("/bin/true", "true", nullptr);
        return 1;
    })));
    EXPECT_TRUE(exited_well(std::system("exit 0")));
    char name[] = "true";
    char* const argv[] = {name, nullptr};
    pid_t child = -1;
    ASSERT_EQ(posix_spawn(&child, "/bin/true", nullptr, nullptr, argv, environ), 0);
    EXPECT_TRUE(exited_well(wait_for(child)));
    EXPECT_EQ(mismatches(words, kBytes, 1), 0u);
}

// Every child execs, exits, or dies of its touch; which block is in which state is up to chance.
TEST_P(ForkTest, HundredForksWhileThreadsFault) {
    FarPool pool(setup(kBlock), kFramesMin + 2, kBytes, 4);
    std::byte* const region = pool.alloc(kBytes);
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> writes{0};
    const auto write = [&](uint64_t lane) {
        for (uint64_t i = lane; !stop; i += 7) {
            auto* const word = reinterpret_cast<uint64_t*>(region + i % kBlocks * kBlock) + lane;
            *word += 1;
            ++writes;
        }
    };
    std::thread a(write, 0);
    std::thread b(write, 1);
    uint64_t wrong = 0;
    for (int i = 0; i < 100; ++i) {
        const pid_t child = fork();
        if (child == 0 && i % 2 == 0) execl("/bin/true", "true", nullptr);
        if (child == 0) _exit(hanare_flush(pool.get(), nullptr, 0) == HANARE_STATUS_FORKED ? 0 : 1);
        wrong += !exited_well(wait_for(child));
    }
    stop = true;
    a.join();
    b.join();
    EXPECT_EQ(wrong, 0u);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < kBlocks; ++i) {
        const auto* const words = reinterpret_cast<uint64_t*>(region + i * kBlock);
        sum += words[0] + words[1];
    }
    EXPECT_EQ(sum, writes);
}

}  // namespace

}  // namespace hanare::api_test
