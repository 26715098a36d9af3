// SPDX-License-Identifier: Apache-2.0
#include "sys/signal.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>

namespace hanare::sys {
namespace {

volatile sig_atomic_t caught = 0;

sigset_t current_mask() {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    return mask;
}

TEST(SignalBlock, DefersSignalsAndNests) {
    caught = 0;
    const auto previous = std::signal(SIGUSR1, [](int) { caught = caught + 1; });
    {
        const SignalBlock outer;
        {
            const SignalBlock inner;
            pthread_kill(pthread_self(), SIGUSR1);
        }
        EXPECT_EQ(caught, 0) << "the inner block's end unblocked what the outer one blocks";
    }
    poll(nullptr, 0, 0);  // ThreadSanitizer delivers signals at the next blocking call
    EXPECT_EQ(caught, 1);
    std::signal(SIGUSR1, previous);
}

TEST(SignalBlock, RestoresTheMaskItFound) {
    sigset_t mask = current_mask();
    sigaddset(&mask, SIGUSR2);
    sigset_t before;
    set_signal_mask(mask, &before);
    {
        const SignalBlock block;
    }
    const sigset_t after = current_mask();
    EXPECT_EQ(sigismember(&after, SIGUSR2), 1);
    EXPECT_EQ(sigismember(&after, SIGUSR1), 0);
    set_signal_mask(before, nullptr);
    const sigset_t restored = current_mask();
    EXPECT_EQ(sigismember(&restored, SIGUSR2), 0);
}

TEST(SignalBlock, BlocksEverythingThatCanBeBlocked) {
    const SignalBlock block;
    const sigset_t mask = current_mask();
    for (const int number : {SIGINT, SIGBUS, SIGSEGV, SIGPROF, SIGALRM, SIGRTMIN, SIGRTMAX}) {
        EXPECT_EQ(sigismember(&mask, number), 1) << number;
    }
}

}  // namespace
}  // namespace hanare::sys
