// SPDX-License-Identifier: Apache-2.0
#include "sys/interrupt.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>

#include "sys/file.hpp"

namespace hanare::sys {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};

std::atomic<int> received_signal{0};
std::atomic<int> event_fd{-1};
struct sigaction previous[std::size(kSignals)];

void on_signal(int number) {
    const int saved_errno = errno;
    int none = 0;
    received_signal.compare_exchange_strong(none, number);
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t put = write(event_fd.load(), &one, sizeof one);
    errno = saved_errno;
}

}  // namespace

Interrupt::Interrupt() : fd_(above_standard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))) {
    received_signal = 0;
    event_fd = fd_;
    struct sigaction action = {};
    action.sa_handler = on_signal;  // no SA_RESTART: long waits end early
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < std::size(kSignals); ++i) {
        sigaction(kSignals[i], nullptr, &previous[i]);
        // What was ignored (nohup) stays ignored.
        if (previous[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
    }
}

Interrupt::~Interrupt() {
    for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &previous[i], nullptr);
    event_fd = -1;
    close(fd_);
}

int Interrupt::signal() noexcept { return received_signal.load(); }

void Interrupt::end_process() {
    const int number = signal();
    std::signal(number, SIG_DFL);
    raise(number);
    _exit(128 + number);
}

}  // namespace hanare::sys
