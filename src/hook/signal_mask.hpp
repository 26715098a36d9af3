// SPDX-License-Identifier: Apache-2.0
//
// How a claimed signal can look blocked without being so.  While the program thinks that it blocks
// a claimed signal, the kernel's mask holds the signal's stand-in instead: a signal that nobody
// uses and whose own blocking is therefore not offered to the program any more.  The kernel then
// carries the program's intention through sigsetjmp, handlers, new threads and fork, and nothing
// has to be kept per thread.  A sent signal that has to wait waits in the kernel as its stand-in.
//
// "Program mask" and "kernel mask" name the two sides.  All functions are async-signal-safe.
#pragma once

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace hanare::hook {

using SignalBits = uint64_t;  // bit n - 1 is signal n, as in the kernel

struct ClaimableSignal {
    int signal_number;
    int stand_in;
};

// SIGSTKFLT is raised by nothing on Linux; 63 is SIGRTMAX - 1.
inline constexpr ClaimableSignal kClaimable[] = {{SIGBUS, SIGSTKFLT}, {SIGSEGV, 63}};

constexpr SignalBits bit_of(int signal_number) { return SignalBits{1} << (signal_number - 1); }

// Only the bytes that the kernel knows of a sigset_t: in a signal frame there are no others.
inline SignalBits load_bits(const sigset_t& set) noexcept {
    SignalBits bits;
    std::memcpy(&bits, &set, sizeof bits);
    return bits;
}
inline void store_bits(sigset_t* set, SignalBits bits) noexcept {
    std::memcpy(set, &bits, sizeof bits);
}
inline sigset_t make_set(SignalBits bits) noexcept {
    sigset_t set = {};
    store_bits(&set, bits);
    return set;
}

// The claimed signals of the process; bits are only ever added.
inline constinit std::atomic<SignalBits> claimed_bits{0};

inline bool any_claimed() noexcept { return claimed_bits.load(std::memory_order_acquire) != 0; }

constexpr SignalBits to_kernel_pair(SignalBits program, const ClaimableSignal& pair) {
    const SignalBits others = program & ~bit_of(pair.signal_number) & ~bit_of(pair.stand_in);
    return others | ((program & bit_of(pair.signal_number)) != 0 ? bit_of(pair.stand_in) : 0);
}

constexpr SignalBits to_program_pair(SignalBits kernel, const ClaimableSignal& pair) {
    const SignalBits others = kernel & ~bit_of(pair.signal_number) & ~bit_of(pair.stand_in);
    return others | ((kernel & bit_of(pair.stand_in)) != 0 ? bit_of(pair.signal_number) : 0);
}

// Of these claimed signals.
constexpr SignalBits to_kernel_mask(SignalBits program, SignalBits claimed) noexcept {
    for (const ClaimableSignal& pair : kClaimable) {
        if ((claimed & bit_of(pair.signal_number)) != 0) program = to_kernel_pair(program, pair);
    }
    return program;
}

inline SignalBits to_kernel_mask(SignalBits program) noexcept {
    return to_kernel_mask(program, claimed_bits.load(std::memory_order_acquire));
}

inline SignalBits to_program_mask(SignalBits kernel) noexcept {
    const SignalBits claimed = claimed_bits.load(std::memory_order_acquire);
    for (const ClaimableSignal& pair : kClaimable) {
        if ((claimed & bit_of(pair.signal_number)) != 0) kernel = to_program_pair(kernel, pair);
    }
    return kernel;
}

}  // namespace hanare::hook
