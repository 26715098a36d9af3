// SPDX-License-Identifier: Apache-2.0
#include "sys/signal.hpp"

#include <cstring>
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

SignalBlock::SignalBlock() noexcept {
    sigset_t all;
    sigemptyset(&all);
    std::memcpy(&all, &kEverySignal, sizeof kEverySignal);
    set_signal_mask(all, &saved_);
}

SignalBlock::~SignalBlock() { set_signal_mask(saved_, nullptr); }

}  // namespace hanare::sys
