// SPDX-License-Identifier: Apache-2.0
#include "sys/signal.hpp"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <sys/syscall.h>
#include <unistd.h>

namespace hanare::sys {

namespace {
constexpr size_t kKernelSigsetBytes = 8;
}

void set_signal_mask(const sigset_t& mask, sigset_t* saved) noexcept {
    if (saved != nullptr) sigemptyset(saved);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, saved, kKernelSigsetBytes);
}

void drop_pending_signal(int number) noexcept {
    const int saved_errno = errno;
    const SignalBits wanted = SignalBits{1} << (number - 1);
    const timespec no_wait = {};
    syscall(SYS_rt_sigtimedwait, &wanted, nullptr, &no_wait, kKernelSigsetBytes);
    errno = saved_errno;
}

SignalBlock::SignalBlock() noexcept {
    sigset_t all;
    sigemptyset(&all);
    std::memcpy(&all, &kEverySignal, sizeof kEverySignal);
    set_signal_mask(all, &saved_);
}

SignalBlock::~SignalBlock() { set_signal_mask(saved_, nullptr); }

}  // namespace hanare::sys
