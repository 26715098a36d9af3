// SPDX-License-Identifier: Apache-2.0
//
// libc's functions that block signals or wait for them: masks are translated on the way in and
// out (signal_mask.hpp).  Sets are copied, so that the caller's may lie in far memory.
// Async-signal-safe, as libc's are.
#include <poll.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "hook/kernel_signals.hpp"
#include "hook/next_function.hpp"
#include "hook/signal_mask.hpp"
#include "hook/wrappers.hpp"

#define HANARE_WRAPPER extern "C" [[gnu::visibility("default")]]

// Declared by headers that only src/sys includes, or by none.
struct epoll_event;
HANARE_WRAPPER int epoll_pwait(int, epoll_event*, int, int, const sigset_t*);
HANARE_WRAPPER int epoll_pwait2(int, epoll_event*, int, const timespec*, const sigset_t*);
HANARE_WRAPPER int __ppoll_chk(pollfd*, nfds_t, const timespec*, const sigset_t*, size_t);

namespace hanare::hook {

namespace {

constinit NextFunction<int(int, const sigset_t*, sigset_t*)> libc_sigprocmask("sigprocmask");
constinit NextFunction<int(int, const sigset_t*, sigset_t*)> libc_sigmask("pthread_sigmask");
constinit NextFunction<int(sigset_t*)> libc_sigpending("sigpending");
constinit NextFunction<int(const sigset_t*)> libc_sigsuspend("sigsuspend");
constinit NextFunction<int(const sigset_t*, siginfo_t*, const timespec*)> libc_sigtimedwait(
    "sigtimedwait");
constinit NextFunction<int(const sigset_t*, int*)> libc_sigwait("sigwait");
constinit NextFunction<int(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*)>
    libc_pselect("pselect");
constinit NextFunction<int(pollfd*, nfds_t, const timespec*, const sigset_t*)> libc_ppoll("ppoll");
constinit NextFunction<int(pollfd*, nfds_t, const timespec*, const sigset_t*, size_t)>
    libc_ppoll_chk("__ppoll_chk");
constinit NextFunction<int(int, epoll_event*, int, int, const sigset_t*)> libc_epoll_pwait(
    "epoll_pwait");
constinit NextFunction<int(int, epoll_event*, int, const timespec*, const sigset_t*)>
    libc_epoll_pwait2("epoll_pwait2");

// A program's set as the kernel must see it; null stays null.
class KernelSet {
public:
    explicit KernelSet(const sigset_t* program) noexcept : given_(program != nullptr) {
        if (given_) set_ = make_set(to_kernel_mask(load_bits(*program)));
    }
    const sigset_t* get() const { return given_ ? &set_ : nullptr; }

private:
    sigset_t set_ = {};
    bool given_;
};

template <typename Next>
int change_mask(Next& next, int how, const sigset_t* set, sigset_t* old) noexcept {
    if (!any_claimed()) return next(how, set, old);
    const KernelSet wanted(set);
    sigset_t previous = {};
    const int result = next(how, wanted.get(), &previous);
    if (result == 0 && old != nullptr) {
        store_bits(old, to_program_mask(load_bits(previous)));
    }
    return result;
}

// The signal that a wait for a program's set returned: a stand-in is its signal held back.
int waited_signal(int number, siginfo_t* info) noexcept {
    if (number <= 0) return number;
    const SignalBits program = to_program_mask(bit_of(number));
    if ((program & bit_of(number)) != 0 || program == 0) return number;
    const int claimed = __builtin_ctzll(program) + 1;
    if (info != nullptr && !release_held_back(info, claimed)) info->si_signo = claimed;
    return claimed;
}

int wait_for(const sigset_t* set, siginfo_t* info, const timespec* timeout) {
    const KernelSet wanted(set);
    siginfo_t got = {};
    const int number = waited_signal(libc_sigtimedwait(wanted.get(), &got, timeout), &got);
    if (number > 0 && info != nullptr) *info = got;
    return number;
}

}  // namespace

void resolve_mask_functions() noexcept {
    libc_sigprocmask.resolve();
    libc_sigmask.resolve();
    libc_sigpending.resolve();
    libc_sigsuspend.resolve();
    libc_sigtimedwait.resolve();
    libc_sigwait.resolve();
    libc_pselect.resolve();
    libc_ppoll.resolve();
    libc_ppoll_chk.resolve();
    libc_epoll_pwait.resolve();
    libc_epoll_pwait2.is_there();  // since glibc 2.35
}

SignalBits thread_mask() noexcept {
    sigset_t mask = {};
    libc_sigmask(SIG_BLOCK, nullptr, &mask);
    return load_bits(mask);
}

void set_thread_mask(SignalBits kernel_mask) noexcept {
    const sigset_t mask = make_set(kernel_mask);
    libc_sigmask(SIG_SETMASK, &mask, nullptr);
}

}  // namespace hanare::hook

namespace hook = hanare::hook;

HANARE_WRAPPER int sigprocmask(int how, const sigset_t* set, sigset_t* old) noexcept {
    return hook::change_mask(hook::libc_sigprocmask, how, set, old);
}

HANARE_WRAPPER int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) noexcept {
    return hook::change_mask(hook::libc_sigmask, how, set, old);
}

HANARE_WRAPPER int sighold(int number) noexcept {
    sigset_t own = {};
    if (sigaddset(&own, number) != 0) return -1;
    return sigprocmask(SIG_BLOCK, &own, nullptr);
}

HANARE_WRAPPER int sigrelse(int number) noexcept {
    sigset_t own = {};
    if (sigaddset(&own, number) != 0) return -1;
    return sigprocmask(SIG_UNBLOCK, &own, nullptr);
}

// The BSD interface has the first 32 signals in an int.
static int change_bsd_mask(int how, int mask) noexcept {
    const sigset_t set = hook::make_set(static_cast<unsigned>(mask));
    sigset_t old = {};
    if (sigprocmask(how, &set, &old) != 0) return -1;
    return static_cast<int>(static_cast<unsigned>(hook::load_bits(old)));
}

HANARE_WRAPPER int sigblock(int mask) noexcept { return change_bsd_mask(SIG_BLOCK, mask); }
HANARE_WRAPPER int sigsetmask(int mask) noexcept { return change_bsd_mask(SIG_SETMASK, mask); }

HANARE_WRAPPER int sigpending(sigset_t* set) noexcept {
    sigset_t pending = {};
    const int result = hook::libc_sigpending(&pending);
    if (result == 0) hook::store_bits(set, hook::to_program_mask(hook::load_bits(pending)));
    return result;
}

HANARE_WRAPPER int sigsuspend(const sigset_t* set) {
    return hook::libc_sigsuspend(hook::KernelSet(set).get());
}

HANARE_WRAPPER int sigwait(const sigset_t* set, int* number) {
    int got = 0;
    const int result = hook::libc_sigwait(hook::KernelSet(set).get(), &got);
    if (result == 0) *number = hook::waited_signal(got, nullptr);
    return result;
}

HANARE_WRAPPER int sigwaitinfo(const sigset_t* set, siginfo_t* info) {
    return hook::wait_for(set, info, nullptr);
}

HANARE_WRAPPER int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* timeout) {
    return hook::wait_for(set, info, timeout);
}

HANARE_WRAPPER int pselect(int count, fd_set* in, fd_set* out, fd_set* except,
                           const timespec* timeout, const sigset_t* mask) {
    return hook::libc_pselect(count, in, out, except, timeout, hook::KernelSet(mask).get());
}

HANARE_WRAPPER int ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask) {
    return hook::libc_ppoll(fds, count, timeout, hook::KernelSet(mask).get());
}

HANARE_WRAPPER int __ppoll_chk(pollfd* fds, nfds_t count, const timespec* timeout,
                               const sigset_t* mask, size_t fds_bytes) {
    return hook::libc_ppoll_chk(fds, count, timeout, hook::KernelSet(mask).get(), fds_bytes);
}

HANARE_WRAPPER int epoll_pwait(int epoll, epoll_event* events, int count, int timeout_ms,
                               const sigset_t* mask) {
    return hook::libc_epoll_pwait(epoll, events, count, timeout_ms, hook::KernelSet(mask).get());
}

HANARE_WRAPPER int epoll_pwait2(int epoll, epoll_event* events, int count, const timespec* timeout,
                                const sigset_t* mask) {
    if (!hook::libc_epoll_pwait2.is_there()) {
        errno = ENOSYS;
        return -1;
    }
    return hook::libc_epoll_pwait2(epoll, events, count, timeout, hook::KernelSet(mask).get());
}
