// SPDX-License-Identifier: Apache-2.0
#include "sys/child_programs.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include <gtest/gtest.h>

#include "sys/event.hpp"
#include "sys/pipe.hpp"
#include "sys/test_support.hpp"

namespace hanare::sys {
namespace {

constexpr int kPatience_ms = 20'000;

ChildPrograms::Launch shell(const std::string& script) {
    return {.path = "/bin/sh",
            .arguments = {"sh", "-c", script},
            .environment = {"PATH=/usr/bin:/bin"}};
}

// The end of the next one.
ChildPrograms::End next_end(ChildPrograms& programs) {
    for (;;) {
        if (const auto end = programs.take_end()) return *end;
        EXPECT_TRUE(wait_until_readable(programs.fd(), -1, kPatience_ms).first);
        EXPECT_FALSE(programs.take_signal());
    }
}

TEST(ChildPrograms, EndAsTheyLike) {
    ChildPrograms programs = ChildPrograms::begin(false).value();
    std::map<pid_t, int> expected;
    for (const int status : {0, 1, 7}) {
        const auto pid = programs.start(shell("exit " + std::to_string(status)));
        ASSERT_TRUE(pid) << pid.error().text;
        expected[*pid] = status;
    }
    expected[programs.start(shell("kill -9 $$")).value()] = 128 + SIGKILL;
    EXPECT_EQ(programs.running(), 4u);
    for (int i = 0; i < 4; ++i) {
        const auto end = next_end(programs);
        const int status =
            WIFSIGNALED(end.status) ? 128 + WTERMSIG(end.status) : WEXITSTATUS(end.status);
        ASSERT_TRUE(expected.contains(end.pid));
        EXPECT_EQ(status, expected[end.pid]);
    }
    EXPECT_EQ(programs.running(), 0u);
}

TEST(ChildPrograms, HaveWhatTheyAreGiven) {
    ChildPrograms programs = ChildPrograms::begin(false).value();
    const std::string text = "input";
    const auto input = pipe_holding(std::as_bytes(std::span(text))).value();
    const auto inherited = pipe_holding(std::as_bytes(std::span(text))).value();
    const auto withheld = pipe_holding(std::as_bytes(std::span(text))).value();
    auto launch = shell(
        "test \"$(cat)\" = input && test \"$(cat /dev/fd/$GIVEN)\" = input && "
        "test ! -e /dev/fd/$WITHHELD && test -z \"$HOME\"");
    launch.environment.push_back("GIVEN=" + std::to_string(inherited.number()));
    launch.environment.push_back("WITHHELD=" + std::to_string(withheld.number()));
    launch.input = input.number();
    launch.inherited = inherited.number();
    ASSERT_TRUE(programs.start(launch));
    EXPECT_EQ(next_end(programs).status, 0);
    EXPECT_NE(fcntl(inherited.number(), F_GETFD) & FD_CLOEXEC, 0);
}

// More than one file for each of many programs, but not for these.
TEST(ChildPrograms, LimitsOfFiles) {
    rlimit before = {};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit low = {std::min<rlim_t>(before.rlim_max, 200), before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    {
        ChildPrograms programs = ChildPrograms::begin(false).value();
        rlimit ours = {};
        getrlimit(RLIMIT_NOFILE, &ours);
        EXPECT_EQ(ours.rlim_cur, before.rlim_max);
        ASSERT_TRUE(programs.start(shell("test $(ulimit -n) = 200")));
        EXPECT_EQ(next_end(programs).status, 0);
    }
    rlimit after = {};
    getrlimit(RLIMIT_NOFILE, &after);
    EXPECT_EQ(after.rlim_cur, low.rlim_cur);
    setrlimit(RLIMIT_NOFILE, &before);
}

TEST(ChildPrograms, TextsWithoutAnInterpreterAreForTheShell) {
    testing::TemporaryDirectory directory;
    const std::string path = directory.path() + "/text";
    const size_t slot = testing::Leftovers::add(path);
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
    ASSERT_EQ(write(file, "exit $1\n", 8), 8);
    close(file);
    ChildPrograms programs = ChildPrograms::begin(false).value();
    ASSERT_TRUE(programs.start(
        {.path = path, .arguments = {"text", "5"}, .environment = {}, .is_text = true}));
    EXPECT_EQ(WEXITSTATUS(next_end(programs).status), 5);
    const auto refused = programs.start({.path = path, .arguments = {"text"}, .environment = {}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().os_errno, ENOEXEC);
    testing::Leftovers::remove(slot);
}

TEST(ChildPrograms, WhatIsNoProgram) {
    ChildPrograms programs = ChildPrograms::begin(false).value();
    const auto missing =
        programs.start({.path = "/nowhere", .arguments = {"x"}, .environment = {}});
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().status, HANARE_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(missing.error().os_errno, ENOENT);
    EXPECT_EQ(programs.running(), 0u);
}

TEST(ChildPrograms, SignalsComeAndAreSent) {
    ChildPrograms programs = ChildPrograms::begin(false).value();
    const pid_t pid = programs.start(shell("exec sleep 600")).value();
    kill(getpid(), SIGTERM);
    ASSERT_TRUE(wait_until_readable(programs.fd(), -1, kPatience_ms).first);
    const auto signal = programs.take_signal();
    ASSERT_TRUE(signal);
    EXPECT_EQ(signal->number, SIGTERM);
    EXPECT_FALSE(signal->from_terminal);
    programs.send(pid, signal->number);
    const auto end = next_end(programs);
    EXPECT_TRUE(WIFSIGNALED(end.status));
    EXPECT_EQ(WTERMSIG(end.status), SIGTERM);
}

// As under nohup, and in the background of a script.
TEST(ChildPrograms, WhatWasIgnoredStaysSo) {
    EXPECT_EQ(testing::run_in_child([]() -> std::string {
                  std::signal(SIGHUP, SIG_IGN);
                  ChildPrograms programs = ChildPrograms::begin(false).value();
                  const auto pid = programs.start(shell("kill -HUP $$; exit 3"));
                  kill(getpid(), SIGHUP);
                  const auto end = next_end(programs);
                  if (programs.take_signal()) return "a signal came";
                  return WIFEXITED(end.status) && WEXITSTATUS(end.status) == 3 ? "" : "it ended";
              }),
              "");
}

TEST(ChildPrograms, SomeIgnoreWhatTheTerminalSends) {
    ChildPrograms programs = ChildPrograms::begin(false).value();
    auto launch = shell("kill -INT $$; kill -HUP $$; exit 3");
    launch.ignores_terminal = true;
    ASSERT_TRUE(programs.start(launch));
    EXPECT_EQ(WEXITSTATUS(next_end(programs).status), 3);
}

TEST(ChildPrograms, DieWithTheirOwner) {
    pid_t pid = -1;
    {
        ChildPrograms programs = ChildPrograms::begin(false).value();
        pid = programs.start(shell("trap '' TERM; exec sleep 600")).value();
    }
    EXPECT_EQ(kill(pid, 0), -1);
    EXPECT_EQ(errno, ESRCH);
}

// A pipe that the child has shows its end to whoever reads.
TEST(ChildPrograms, DieWhenTheirOwnerIsKilled) {
    Pipe pipe = make_pipe().value();
    const pid_t owner = fork();
    if (owner == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        auto programs = ChildPrograms::begin(false);
        auto launch = shell("exec sleep 600");
        launch.inherited = pipe.to.number();
        if (programs && programs->start(launch)) raise(SIGKILL);
        _exit(1);
    }
    pipe.to.close();
    int status = 0;
    ASSERT_EQ(waitpid(owner, &status, 0), owner);
    EXPECT_TRUE(WIFSIGNALED(status));
    std::byte byte{};
    EXPECT_EQ(read_exactly(pipe.from.number(), {&byte, 1}, kPatience_ms).error().status,
              HANARE_STATUS_NOT_FOUND);
}

}  // namespace
}  // namespace hanare::sys
