// SPDX-License-Identifier: Apache-2.0
#include "sys/signal.hpp"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/raw_call.hpp"

namespace hanare::sys {

namespace {
constexpr size_t kKernelSigsetBytes = 8;

constinit std::atomic<SignalBits> unblocked{0};

void block_signals(SignalBits bits, sigset_t* saved) noexcept {
    bits &= ~unblocked.load(std::memory_order_relaxed);
    sigset_t set;
    sigemptyset(&set);
    std::memcpy(&set, &bits, sizeof bits);
    set_signal_mask(set, saved);
}

}  // namespace

void keep_unblocked(SignalBits signals) noexcept { unblocked.store(signals); }

void set_signal_mask(const sigset_t& mask, sigset_t* saved) noexcept {
    if (saved != nullptr) sigemptyset(saved);
    raw::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, saved, kKernelSigsetBytes);
}

bool is_in_change_of_user() noexcept {
    SignalBits blocked = 0;
    raw::syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &blocked, kKernelSigsetBytes);
    return (blocked & ~kEverySignal) != 0;
}

void drop_pending_signal(int number) noexcept {
    const int saved_errno = errno;
    const SignalBits wanted = SignalBits{1} << (number - 1);
    const timespec no_wait = {};
    syscall(SYS_rt_sigtimedwait, &wanted, nullptr, &no_wait, kKernelSigsetBytes);
    errno = saved_errno;
}

SignalBlock::SignalBlock() noexcept { block_signals(kEverySignal, &saved_); }

SignalBlock::~SignalBlock() { set_signal_mask(saved_, nullptr); }

SignalBlockButFaults::SignalBlockButFaults() noexcept {
    constexpr SignalBits kFaults =
        (SignalBits{1} << (SIGBUS - 1)) | (SignalBits{1} << (SIGSEGV - 1));
    block_signals(kEverySignal & ~kFaults, &saved_);
}

SignalBlockButFaults::~SignalBlockButFaults() { set_signal_mask(saved_, nullptr); }

}  // namespace hanare::sys
