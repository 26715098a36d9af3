// SPDX-License-Identifier: Apache-2.0
//
// Spaces by the C API: this process has them, and starts programs (api_task.c, and others) as
// tasks.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "hanare/hanare.h"

namespace {

constexpr int kLimitMs = 60'000;

std::string last_error() {
    std::array<char, 512> text{};
    hanare_last_error(text.data(), text.size());
    return text.data();
}

#define OK(call) ASSERT_EQ((call), HANARE_STATUS_OK) << last_error()

class SpaceTest : public testing::Test {
protected:
    void SetUp() override { OK(hanare_space_create(nullptr, &space_)); }
    void TearDown() override {
        if (space_ == nullptr) return;
        EXPECT_EQ(hanare_space_destroy(space_), HANARE_STATUS_OK);
    }

    pid_t spawn(const std::vector<std::string>& words, const char* const* environment = nullptr) {
        std::vector<const char*> arguments;
        for (const std::string& word : words) arguments.push_back(word.c_str());
        arguments.push_back(nullptr);
        const hanare_space_program program = {.struct_size = sizeof program,
                                              .path = arguments[0],
                                              .arguments = arguments.data(),
                                              .environment = environment};
        pid_t process = -1;
        EXPECT_EQ(hanare_space_spawn(space_, &program, &process), HANARE_STATUS_OK) << last_error();
        return process;
    }
    pid_t task(std::vector<std::string> words) {
        words.insert(words.begin(), API_TASK);
        return spawn(words);
    }
    int status_of(pid_t process) {
        int status = -1;
        pid_t ended = 0;
        EXPECT_EQ(hanare_space_wait(space_, process, kLimitMs, &ended, &status), HANARE_STATUS_OK)
            << last_error();
        EXPECT_EQ(ended, process);
        return status;
    }
    hanare_status refused(const char* path) {
        const hanare_space_program program = {.struct_size = sizeof program,
                                              .path = path,
                                              .arguments = nullptr,
                                              .environment = nullptr};
        pid_t process = -1;
        const hanare_status status = hanare_space_spawn(space_, &program, &process);
        EXPECT_EQ(process, -1);
        return status;
    }

    hanare_space* space_ = nullptr;
};

TEST_F(SpaceTest, StatusesAreThoseOfTheTasks) {
    EXPECT_EQ(status_of(spawn({"/bin/true"})), 0);
    EXPECT_EQ(WEXITSTATUS(status_of(spawn({"bash", "-c", "exit 7"}))), 7);
    const pid_t sleeping = spawn({"sleep", "1000"});
    int status = 0;
    EXPECT_EQ(hanare_space_wait(space_, sleeping, 1, nullptr, &status), HANARE_STATUS_TIMEOUT);
    EXPECT_EQ(kill(sleeping, SIGTERM), 0);
    EXPECT_EQ(WTERMSIG(status_of(sleeping)), SIGTERM);
    EXPECT_EQ(hanare_space_wait(space_, sleeping, 0, nullptr, &status), HANARE_STATUS_NOT_FOUND);
}

TEST_F(SpaceTest, AnyTaskIsWaitedForOnce) {
    std::vector<pid_t> begun = {spawn({"/bin/true"}), spawn({"/bin/true"}), spawn({"/bin/true"})};
    while (!begun.empty()) {
        pid_t ended = 0;
        OK(hanare_space_wait(space_, 0, kLimitMs, &ended, nullptr));
        ASSERT_EQ(std::erase(begun, ended), 1u);
    }
    EXPECT_EQ(hanare_space_wait(space_, 0, 0, nullptr, nullptr), HANARE_STATUS_NOT_FOUND);
}

// A short task that begins while somebody waits for any.
TEST_F(SpaceTest, AnyTaskIsALaterOneToo) {
    const pid_t sleeping = spawn({"sleep", "1000"});
    pid_t ended = 0;
    std::thread waiting([&] {
        EXPECT_EQ(hanare_space_wait(space_, 0, kLimitMs, &ended, nullptr), HANARE_STATUS_OK);
    });
    usleep(50'000);
    const pid_t later = spawn({"/bin/true"});
    waiting.join();
    EXPECT_EQ(ended, later);
    kill(sleeping, SIGKILL);
    status_of(sleeping);
}

TEST_F(SpaceTest, ManyThreadsSpawnAndTheUmaskStays) {
    const mode_t before = umask(027);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([this] {
            for (int k = 0; k < 10; ++k) EXPECT_EQ(status_of(spawn({"/bin/true"})), 0);
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(umask(before), 027u);
}

TEST_F(SpaceTest, WithoutDescriptorsItSaysSo) {
    rlimit before = {};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const int lowest = dup(0);
    close(lowest);
    const rlimit none = {.rlim_cur = static_cast<rlim_t>(lowest), .rlim_max = before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    const hanare_status status = refused("/bin/true");
    const hanare_status waited = hanare_space_wait(space_, 0, 1, nullptr, nullptr);
    setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_EQ(waited, HANARE_STATUS_NOT_FOUND);
    EXPECT_EQ(status, HANARE_STATUS_SYSTEM) << last_error();
    EXPECT_EQ(status_of(spawn({"/bin/true"})), 0);
}

TEST_F(SpaceTest, TasksHaveWhatTheirsIs) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    ASSERT_EQ(fcntl(ends[1], F_SETFD, 0), 0);
    const std::array<const char*, 2> environment = {"COLOUR=green", nullptr};
    const pid_t process =
        spawn({"bash", "-c", "echo $COLOUR $HOME $0 >&" + std::to_string(ends[1]), "named"},
              environment.data());
    EXPECT_EQ(status_of(process), 0);
    close(ends[1]);
    std::array<char, 64> text{};
    ASSERT_GT(read(ends[0], text.data(), text.size() - 1), 0);
    EXPECT_STREQ(text.data(), "green named\n");
    EXPECT_EQ(read(ends[0], text.data(), text.size()), 0);  // the root has not kept it
    close(ends[0]);
}

TEST_F(SpaceTest, OneWalksTheListOfAnother) {
    const pid_t walks = task({"walk", "numbers"});  // waits until there is one
    const pid_t has = task({"list", "numbers", "100000"});
    EXPECT_EQ(status_of(walks), 0);
    EXPECT_EQ(status_of(has), 0);
}

TEST_F(SpaceTest, LocksSurviveWhoIsKilled) {
    const pid_t takes = task({"take", "held"});
    const pid_t holds = task({"hold", "held"});
    EXPECT_EQ(status_of(task({"found", "seen"})), 0);
    kill(holds, SIGKILL);
    EXPECT_EQ(WTERMSIG(status_of(holds)), SIGKILL);
    EXPECT_EQ(status_of(takes), 0);
}

TEST_F(SpaceTest, ManyPublishAtOnce) {
    std::vector<pid_t> processes;
    for (int i = 0; i < 4; ++i) processes.push_back(task({"names", "300"}));
    for (const pid_t each : processes) EXPECT_EQ(status_of(each), 0);
}

TEST_F(SpaceTest, WhoIsKilledWhilePublishingHoldsUpNobody) {
    for (int i = 0; i < 10; ++i) {
        const pid_t publishing = task({"names", "1000000"});
        usleep(5000 * static_cast<useconds_t>(i));
        kill(publishing, SIGKILL);
        status_of(publishing);
    }
    EXPECT_EQ(status_of(task({"names", "10"})), 0);
}

TEST_F(SpaceTest, ChildrenOfTasksAreNone) { EXPECT_EQ(status_of(task({"forked"})), 0); }

TEST_F(SpaceTest, TasksHavePools) {
    const pid_t one = task({"pool"});
    const pid_t other = task({"pool"});
    EXPECT_EQ(status_of(one), 0);
    EXPECT_EQ(status_of(other), 0);
}

TEST_F(SpaceTest, OnePoolForSeveralTasks) {
    const pid_t shares = task({"share", "array"});
    const pid_t changes = task({"change", "array"});
    EXPECT_EQ(status_of(changes), 0);
    EXPECT_EQ(status_of(shares), 0);
}

TEST_F(SpaceTest, WhatCanBeNoTaskIsRefused) {
    EXPECT_EQ(refused("/nowhere"), HANARE_STATUS_NOT_FOUND);
    EXPECT_EQ(refused(FIXED_PROGRAM), HANARE_STATUS_NOT_SUPPORTED) << last_error();
    EXPECT_EQ(refused("/etc/passwd"), HANARE_STATUS_PERMISSION) << last_error();
    EXPECT_EQ(refused(nullptr), HANARE_STATUS_INVALID_ARGUMENT);
}

TEST_F(SpaceTest, EndsWithItsTasks) {
    const pid_t process = spawn({"sleep", "1000"});
    OK(hanare_space_destroy(space_));
    space_ = nullptr;
    EXPECT_EQ(kill(process, 0), -1);
}

TEST_F(SpaceTest, ItsDeathIsSeen) {
    // It must not kill before who spawned it has the answer.
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    const pid_t process =
        spawn({"bash", "-c",
               "read -r go <&" + std::to_string(ends[0]) + "; kill -KILL $PPID; sleep 1000"});
    EXPECT_EQ(write(ends[1], "\n", 1), 1);
    for (const int end : ends) close(end);
    int status = 0;
    EXPECT_EQ(hanare_space_wait(space_, process, kLimitMs, nullptr, &status),
              HANARE_STATUS_PEER_LOST);
    EXPECT_EQ(refused("/bin/true"), HANARE_STATUS_PEER_LOST) << last_error();
}

TEST_F(SpaceTest, AChildHasNone) {
    const pid_t child = fork();
    if (child == 0) _exit(hanare_space_destroy(space_) == HANARE_STATUS_FORKED ? 0 : 1);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(status_of(spawn({"/bin/true"})), 0);
}

TEST(SpaceOutsideTest, ThereIsNothingToFind) {
    uint32_t task = 0;
    void* address = nullptr;
    EXPECT_EQ(hanare_space_self(&task), HANARE_STATUS_NOT_FOUND);
    EXPECT_EQ(hanare_space_publish("name", &task), HANARE_STATUS_NOT_FOUND);
    EXPECT_EQ(hanare_space_find("name", 0, &address), HANARE_STATUS_NOT_FOUND);
    EXPECT_EQ(hanare_space_self(nullptr), HANARE_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(hanare_space_create(nullptr, nullptr), HANARE_STATUS_INVALID_ARGUMENT);
}

// Also where a child of that process has all its descriptors and lives on.
TEST(SpaceOutsideTest, EndsWithTheProcessThatHasIt) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    const pid_t creator = fork();
    ASSERT_NE(creator, -1);
    if (creator == 0) {
        hanare_space* space = nullptr;
        const std::array<const char*, 3> words = {"sleep", "1000", nullptr};
        const hanare_space_program program = {.struct_size = sizeof program,
                                              .path = "sleep",
                                              .arguments = words.data(),
                                              .environment = nullptr};
        pid_t process = -1;
        if (hanare_space_create(nullptr, &space) != HANARE_STATUS_OK ||
            hanare_space_spawn(space, &program, &process) != HANARE_STATUS_OK) {
            _exit(1);
        }
        const pid_t child = fork();
        if (child == 0) {
            for (;;) pause();
        }
        const std::array<pid_t, 2> both = {process, child};
        _exit(write(ends[1], both.data(), sizeof both) == sizeof both ? 0 : 1);
    }
    close(ends[1]);
    std::array<pid_t, 2> both{};
    const bool has_come = read(ends[0], both.data(), sizeof both) == ssize_t{sizeof both};
    close(ends[0]);
    int status = -1;
    waitpid(creator, &status, 0);
    ASSERT_TRUE(has_come && status == 0);
    for (int ms = 0; kill(both[0], 0) == 0 && ms < kLimitMs; ++ms) usleep(1000);
    EXPECT_EQ(kill(both[0], SIGKILL), -1);
    EXPECT_EQ(kill(both[1], SIGKILL), 0);
}

TEST(SpaceOutsideTest, TwoSpacesOfAProcessDiffer) {
    hanare_space* one = nullptr;
    hanare_space* other = nullptr;
    OK(hanare_space_create(nullptr, &one));
    OK(hanare_space_create(nullptr, &other));
    OK(hanare_space_destroy(one));
    const hanare_space_program program = {.struct_size = sizeof program,
                                          .path = "/bin/true",
                                          .arguments = nullptr,
                                          .environment = nullptr};
    pid_t process = 0;
    int status = -1;
    OK(hanare_space_spawn(other, &program, &process));
    OK(hanare_space_wait(other, process, kLimitMs, nullptr, &status));
    EXPECT_EQ(status, 0);
    OK(hanare_space_destroy(other));
}

}  // namespace
