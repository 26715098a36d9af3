// SPDX-License-Identifier: Apache-2.0
#include "sys/guardian.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>

#include "base/sanitizers.hpp"
#include "base/units.hpp"
#include "sys/cgroup.hpp"
#include "sys/swap_file.hpp"
#include "sys/test_support.hpp"
#include "sys/text_file.hpp"
#include "sys/zram_swap.hpp"

namespace hanare::sys {
namespace {

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// Nobody tells of the end of a process that is no child, nor of what it did before.
template <typename Condition>
bool eventually(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
}

// Runs `work` in a process that then dies as by `kill -9`.
void run_and_be_killed(const std::function<void()>& work) {
    const std::string how = testing::run_in_child([&]() -> std::string {
        work();
        raise(SIGKILL);
        return "";
    });
    EXPECT_EQ(how, "child died of signal 9");
}

class GuardianTest : public ::testing::Test {
protected:
    void SetUp() override { ASSERT_EQ(mkdir(made_.c_str(), 0755), 0); }
    ~GuardianTest() override {
        rmdir(made_.c_str());
        EXPECT_EQ(directory_.entry_count(), 0u) << "something was left behind";
    }

    testing::TemporaryDirectory directory_;
    const std::string made_ = directory_.path() + "/made";  // removed as a cgroup is
};

TEST_F(GuardianTest, UndoesWhatAKilledProcessLeft) {
    run_and_be_killed([&] {
        static auto guardian = Guardian::start();
        guardian->watch(Undo::kCgroup, made_);
    });
    EXPECT_TRUE(eventually([&] { return !exists(made_); }));
}

TEST_F(GuardianTest, UndoesWhatIsNotReleased) {
    {
        auto guardian = Guardian::start();
        ASSERT_TRUE(guardian) << guardian.error().text;
        guardian->watch(Undo::kCgroup, made_);
        guardian->release(Undo::kCgroup, made_);
    }
    EXPECT_TRUE(exists(made_));
    {
        auto guardian = Guardian::start();
        ASSERT_TRUE(guardian) << guardian.error().text;
        guardian->watch(Undo::kCgroup, made_);
        const Guardian moved = std::move(*guardian);
        EXPECT_TRUE(exists(made_));
    }
    EXPECT_FALSE(exists(made_));
}

TEST_F(GuardianTest, TakesTheControllerOut) {
    const std::string control = directory_.path() + "/control";
    std::ofstream(control) << "+memory";
    {
        auto guardian = Guardian::start();
        ASSERT_TRUE(guardian) << guardian.error().text;
        guardian->watch(Undo::kController, control);
    }
    EXPECT_EQ(read_text_file(control).value_or(""), "-memory");
    unlink(control.c_str());
}

TEST_F(GuardianTest, TakesNoSignalsAndHasASessionOfItsOwn) {
#if defined(HANARE_TSAN)
    GTEST_SKIP() << "the sanitizer gives it a thread that does not block SIGPIPE";
#endif
    {
        auto guardian = Guardian::start();
        ASSERT_TRUE(guardian) << guardian.error().text;
        EXPECT_EQ(getsid(guardian->pid()), guardian->pid());
        for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1}) {
            EXPECT_EQ(kill(guardian->pid(), number), 0);
        }
        guardian->watch(Undo::kCgroup, made_);
    }
    EXPECT_FALSE(exists(made_));
}

TEST_F(GuardianTest, KeepsNothingOpen) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const auto guardian = Guardian::start();
    ASSERT_TRUE(guardian) << guardian.error().text;
    close(ends[1]);
    char byte = 0;
    EXPECT_EQ(read(ends[0], &byte, 1), 0) << "waits for ever where it is open";
    close(ends[0]);
}

TEST_F(GuardianTest, WhoseGuardianWasKilledGoesOn) {
    auto guardian = Guardian::start();
    ASSERT_TRUE(guardian) << guardian.error().text;
    ASSERT_EQ(kill(guardian->pid(), SIGKILL), 0);
    ASSERT_TRUE(eventually([&] {
        guardian->watch(Undo::kCgroup, made_);
        siginfo_t ended = {};
        return waitid(P_PID, static_cast<id_t>(guardian->pid()), &ended,
                      WEXITED | WNOHANG | WNOWAIT) == 0 &&
               ended.si_pid != 0;
    }));
    guardian->watch(Undo::kCgroup, made_);  // no SIGPIPE
}

TEST_F(GuardianTest, RemovesCgroupsAndSwapFiles) {
    constexpr uint64_t kSwapBytes = 4 * kMiB;
    int names[2];
    ASSERT_EQ(pipe2(names, O_CLOEXEC), 0);
    run_and_be_killed([&] {
        static auto guardian = Guardian::start();
        static auto cgroup = MemoryCgroup::create("hanare-test-guard", 64 * kMiB, &*guardian);
        static auto swap = SwapFile::create(directory_.path(), kSwapBytes, &*guardian);
        static auto zram = ZramSwap::create(directory_.path(), kSwapBytes, &*guardian);
        const std::string text = (cgroup ? cgroup->directory() : "") + "\n" +
                                 (swap ? swap->path() : "") + "\n" + (zram ? zram->path() : "") +
                                 "\n";
        if (write(names[1], text.data(), text.size()) < 0) std::perror("write");
    });
    close(names[1]);
    char text[1024] = "";
    ASSERT_GT(read(names[0], text, sizeof text - 1), 0);
    close(names[0]);
    std::istringstream lines(text);
    std::string cgroup, swap, zram;
    std::getline(lines, cgroup);
    std::getline(lines, swap);
    std::getline(lines, zram);
    EXPECT_TRUE(zram.empty() || eventually([&] { return !exists(zram); })) << zram;
    EXPECT_TRUE(cgroup.empty() || eventually([&] { return !exists(cgroup); })) << cgroup;
    EXPECT_TRUE(eventually([&] { return directory_.entry_count() == 1; })) << "only " << made_;
    if (swap.empty()) GTEST_SKIP() << "swap files cannot be turned on here";
    EXPECT_TRUE(eventually([&] { return !exists(swap); })) << swap;
    EXPECT_EQ(read_text_file("/proc/swaps").value_or("").find(swap), std::string::npos);
}

}  // namespace
}  // namespace hanare::sys
