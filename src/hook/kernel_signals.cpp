// SPDX-License-Identifier: Apache-2.0
//
// A held-back signal carries its original si_code in si_errno, which the kernel leaves alone.
#include "hook/kernel_signals.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "sys/raw_call.hpp"

namespace hanare::hook {

namespace {

constexpr uint32_t kHeldBack = 0x48414e00;  // "HAN", and the low byte is the si_code
constexpr uint32_t kHeldBackMask = 0xffffff00;

void queue_to_thread(int signal_number, siginfo_t info) noexcept {
    sys::raw::syscall(SYS_rt_tgsigqueueinfo, sys::raw::syscall(SYS_getpid),
                      sys::raw::syscall(SYS_gettid), signal_number, &info);
}

}  // namespace

void take_default_action(const siginfo_t& info) noexcept {
    const int error = errno;
    const KernelSigaction action = {};
    sys::raw::syscall(SYS_rt_sigaction, info.si_signo, &action, nullptr, sizeof action.mask);
    queue_to_thread(info.si_signo, info);
    errno = error;
}

void hold_back(const siginfo_t& info, int stand_in) noexcept {
    const int error = errno;
    siginfo_t held = info;
    held.si_signo = stand_in;
    held.si_errno =
        static_cast<int>(kHeldBack | (static_cast<uint32_t>(info.si_code) & ~kHeldBackMask));
    if (info.si_code == SI_TKILL) {
        queue_to_thread(stand_in, held);
    } else {
        // The kernel lets a thread forge SI_USER for itself only, SI_QUEUE for any.
        held.si_code = SI_QUEUE;
        sys::raw::syscall(SYS_rt_sigqueueinfo, sys::raw::syscall(SYS_getpid), stand_in, &held);
    }
    errno = error;
}

bool release_held_back(siginfo_t* info, int signal_number) noexcept {
    const auto mark = static_cast<uint32_t>(info->si_errno);
    if (info->si_code > 0 || (mark & kHeldBackMask) != kHeldBack) return false;
    info->si_signo = signal_number;
    info->si_code = static_cast<int8_t>(mark & ~kHeldBackMask);
    info->si_errno = 0;
    return true;
}

}  // namespace hanare::hook
