// SPDX-License-Identifier: Apache-2.0
#include "sys/measured_program.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>

#include "base/units.hpp"

namespace hanare::sys {
namespace {

class MeasuredProgramTest : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_EQ(open_unnamed("/tmp", input_), 0);
        ASSERT_EQ(open_unnamed("/tmp", output_), 0);
    }

    MeasuredProgram::Launch shell(const std::string& script) const {
        return {.path = "/bin/sh",
                .arguments = {"sh", "-c", script},
                .environment = {"HANARE_TEST=set"},
                .input = input_.number(),
                .output = output_.number(),
                .cgroup = {},
                .user = {}};
    }
    std::string output() const {
        char text[4096] = {};
        const ssize_t got = pread(output_.number(), text, sizeof text - 1, 0);
        return {text, static_cast<size_t>(got > 0 ? got : 0)};
    }
    static std::string errors(const MeasuredProgram& program) {
        std::string text;
        char part[256];
        for (ssize_t got; (got = read(program.error_fd(), part, sizeof part)) > 0;) {
            text.append(part, static_cast<size_t>(got));
        }
        return text;
    }

    FileDescriptor input_;
    FileDescriptor output_;
};

TEST_F(MeasuredProgramTest, ReadsWritesAndTells) {
    ASSERT_EQ(pwrite(input_.number(), "given\n", 6, 0), 6);
    ASSERT_EQ(setenv("HANARE_TEST", "ours", 1), 0);
    auto program = MeasuredProgram::start(shell("cat; echo $HANARE_TEST; echo told >&2; exit 3"));
    unsetenv("HANARE_TEST");
    ASSERT_TRUE(program) << program.error().text;
    EXPECT_EQ(errors(*program), "told\n");
    const auto end = program->wait();
    ASSERT_TRUE(end);
    EXPECT_EQ(WEXITSTATUS(end->status), 3);
    EXPECT_GT(end->peak_resident_bytes, 256 * kKiB);
    EXPECT_EQ(output(), "given\nset\n");
}

TEST_F(MeasuredProgramTest, TellsWhyItDidNotBegin) {
    auto launch = shell("");
    launch.path = "/nonexistent";
    auto program = MeasuredProgram::start(launch);
    ASSERT_TRUE(program);
    EXPECT_EQ(errors(*program), "sh: No such file or directory\n");
    EXPECT_EQ(WEXITSTATUS(program->wait()->status), 127);
    launch = shell("");
    launch.cgroup = "/nonexistent";
    const auto second = MeasuredProgram::start(launch);
    ASSERT_TRUE(second);
    EXPECT_NE(errors(*second).find("entering the cgroup"), std::string::npos);
}

TEST_F(MeasuredProgramTest, WaitsForWhatItHasStarted) {
    auto program = MeasuredProgram::start(shell("sleep 0.3 & exec sleep 100"));
    ASSERT_TRUE(program);
    program->kill();
    const auto before = std::chrono::steady_clock::now();
    program->wait_for_last(std::chrono::seconds(20));
    EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(20));
    const auto end = program->wait();
    ASSERT_TRUE(end);
    EXPECT_EQ(WTERMSIG(end->status), SIGKILL);
    EXPECT_FALSE(program->wait()) << "once";
}

TEST_F(MeasuredProgramTest, BecomesSomebodyElse) {
    const auto user = unprivileged_user();
    if (!user) GTEST_SKIP() << "only root becomes somebody else";
    auto launch = shell("id -u; id -G; echo 1 >/proc/sys/vm/swappiness || echo refused");
    launch.user = user;
    auto program = MeasuredProgram::start(launch);
    ASSERT_TRUE(program);
    EXPECT_TRUE(program->wait());
    EXPECT_EQ(output(),
              std::to_string(user->user) + "\n" + std::to_string(user->group) + "\nrefused\n");
}

}  // namespace
}  // namespace hanare::sys
