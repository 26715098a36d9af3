// SPDX-License-Identifier: Apache-2.0
//
// What a process does about its signals, those that a libc keeps for itself included.
#pragma once

#include <sys/syscall.h>

#include <csignal>
#include <cstdint>
#include <cstring>

#include "sys/raw_thread.hpp"

namespace hanare::task {

inline constexpr unsigned kSignals = 64;

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

}  // namespace hanare::task
