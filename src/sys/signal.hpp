// SPDX-License-Identifier: Apache-2.0
//
// Blocking signals around code that holds locks a fault handler may also want.
#pragma once

#include <csignal>
#include <cstdint>

namespace hanare::sys {

// Bits of a kernel signal mask.
using SignalBits = uint64_t;

// Every signal but the one by which libc makes all threads change their user (setuid and its
// family wait until every thread has taken it; its handler makes one system call).
inline constexpr SignalBits kEverySignal = ~(SignalBits{1} << (33 - 1));

// From now on these are not blocked by what follows.
void keep_unblocked(SignalBits signals) noexcept;

// Blocks every signal of the calling thread for its life.  Synchronous faults (SIGBUS, SIGSEGV)
// inside it would kill the process, which is what we want: the pager never faults on far memory.
// Nests.  Async-signal-safe.
class SignalBlock {
public:
    SignalBlock() noexcept;
    ~SignalBlock();
    SignalBlock(const SignalBlock&) = delete;
    SignalBlock& operator=(const SignalBlock&) = delete;

private:
    sigset_t saved_;
};

// The same but for SIGBUS and SIGSEGV: for code that holds no lock of the pager's and may touch far
// memory.
class SignalBlockButFaults {
public:
    SignalBlockButFaults() noexcept;
    ~SignalBlockButFaults();
    SignalBlockButFaults(const SignalBlockButFaults&) = delete;
    SignalBlockButFaults& operator=(const SignalBlockButFaults&) = delete;

private:
    sigset_t saved_;
};

// Whether the calling thread is in libc's handler of that signal.  Async-signal-safe.
bool is_in_change_of_user() noexcept;

// Forgets this signal if it is pending for the calling thread.  Async-signal-safe.
void drop_pending_signal(int number) noexcept;

// rt_sigprocmask(2) itself, past any interposed libc wrapper.  `saved` may be null.
void set_signal_mask(const sigset_t& mask, sigset_t* saved) noexcept;

}  // namespace hanare::sys
