// SPDX-License-Identifier: Apache-2.0
#include "sys/bare_thread.hpp"

#include <atomic>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <gtest/gtest.h>
#include <sched.h>
#include <string>
#include <thread>
#include <unistd.h>

#include "sys/thread_state.hpp"

namespace hanare::sys {
namespace {

thread_local int own_value = 5;

class BareThreadTest : public testing::Test {
protected:
    void SetUp() override {
        const auto prepared = thread_.prepare();
        if (!prepared) GTEST_SKIP() << prepared.error().text;
    }

    // Runs the function in the thread, and waits until it has ended.
    template <typename Function>
    void run(Function function) {
        const auto body = [](void* argument) { (*static_cast<Function*>(argument))(); };
        ASSERT_EQ(thread_.start(body, &function), 0);
        thread_.join();
    }

    BareThread thread_;
};

TEST_F(BareThreadTest, RunsBesideTheOthers) {
    uint32_t id = 0;
    run([&] { id = current_thread_id(); });
    EXPECT_NE(id, 0U);
    EXPECT_NE(id, current_thread_id());
    run([&] { id = 0; });  // again
    EXPECT_EQ(id, 0U);
}

TEST_F(BareThreadTest, HasVariablesOfItsOwn) {
    errno = 7;
    own_value = 6;
    int seen = 0;
    bool is_digit = false;
    std::string text;
    run([&] {
        seen = own_value;
        own_value = 8;
        is_digit = std::isdigit('4') != 0;
        text.resize(64);
        text.resize(static_cast<size_t>(std::snprintf(text.data(), 64, "%.2f", 1.5)));
        static_cast<void>(close(-1));
        seen += errno == EBADF ? 100 : 0;
    });
    EXPECT_EQ(seen, 105);
    EXPECT_TRUE(is_digit);
    EXPECT_EQ(text, "1.50");
    EXPECT_EQ(errno, 7);
    EXPECT_EQ(own_value, 6);
}

TEST_F(BareThreadTest, IsStartedByASignalHandler) {
    static BareThread* thread = nullptr;
    static std::atomic<int> ran{0};
    static int error = -1;
    thread = &thread_;
    ran = 0;
    struct sigaction before{};
    struct sigaction action{};
    action.sa_handler = [](int) { error = thread->start([](void*) { ++ran; }, nullptr); };
    ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
    std::raise(SIGUSR1);
    thread_.join();
    sigaction(SIGUSR1, &before, nullptr);
    EXPECT_EQ(error, 0);
    EXPECT_EQ(ran, 1);
}

TEST_F(BareThreadTest, IsNotBoundToTheProcessorOfWhoStartsIt) {
    cpu_set_t all;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "needs two processors";
    int processors = 0;
    std::thread bound([&] {
        cpu_set_t one;
        CPU_ZERO(&one);
        for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
            if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
        }
        ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
        run([&] {
            cpu_set_t set;
            processors = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : -1;
        });
    });
    bound.join();
    EXPECT_EQ(processors, CPU_COUNT(&all));
}

}  // namespace
}  // namespace hanare::sys
