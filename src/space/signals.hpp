// SPDX-License-Identifier: Apache-2.0
//
// Signals to the process that stands for tasks (the root of `hanare space run`, or a proxy), and
// what a process does about all of them, those that a libc keeps for itself included.
#pragma once

#include <sys/syscall.h>

#include <csignal>
#include <cstdint>
#include <cstring>

#include "sys/foreground_program.hpp"
#include "sys/raw_thread.hpp"

namespace hanare::space {

constexpr unsigned kSignals = 64;

// struct sigaction as the kernel has it.
struct SignalAction {
    uint64_t handler = 0;  // 0: the default, 1: ignored
    uint64_t flags = 0;
    uint64_t restorer = 0;
    uint64_t mask = 0;
};

// Without a libc's variables.
inline SignalAction signal_action(unsigned number) noexcept {
    SignalAction action;
    sys::raw_call6(SYS_rt_sigaction, number, 0, reinterpret_cast<uint64_t>(&action),
                   sizeof action.mask, 0, 0);
    return action;
}

// The kernel's form of a mask.
inline uint64_t bits_of(const sigset_t& set) noexcept {
    uint64_t bits = 0;
    std::memcpy(&bits, &set, sizeof bits);
    return bits;
}

// What the terminal sends.  A timer and the limit of processor time are the process's own.
inline bool goes_to_all_by_itself(int number, int code) noexcept {
    if (number == SIGALRM || number == SIGXCPU) return false;
    return sys::comes_to_program_too(number, code);
}

}  // namespace hanare::space
