// SPDX-License-Identifier: Apache-2.0
//
// libc's functions that set dispositions.  The mask of a handler of any other signal is stored in
// the kernel as a kernel mask, so that no handler blocks a claimed signal, and given back as the
// program set it.  Async-signal-safe, as libc's are.
#include <cerrno>
#include <csignal>

#include "hook/claims.hpp"
#include "hook/disposition.hpp"
#include "hook/next_function.hpp"
#include "hook/wrappers.hpp"

#define HANARE_WRAPPER extern "C" [[gnu::visibility("default")]]

// Declared by <signal.h> only under other feature macros.
HANARE_WRAPPER int __sigaction(int, const struct sigaction*, struct sigaction*) noexcept;
HANARE_WRAPPER sighandler_t bsd_signal(int, sighandler_t) noexcept;

namespace hanare::hook {

namespace {

constinit NextFunction<int(int, const struct sigaction*, struct sigaction*)> libc_sigaction(
    "sigaction");
constinit NextFunction<sighandler_t(int, sighandler_t)> libc_signal("signal");
constinit NextFunction<sighandler_t(int, sighandler_t)> libc_sysv_signal("__sysv_signal");

int change_other(int number, const struct sigaction* action, struct sigaction* old) noexcept {
    struct sigaction wanted = {};
    struct sigaction previous = {};
    if (action != nullptr) {
        wanted = *action;
        store_bits(&wanted.sa_mask, to_kernel_mask(load_bits(wanted.sa_mask)));
    }
    const int result = libc_sigaction(number, action != nullptr ? &wanted : nullptr, &previous);
    if (result != 0) return result;
    if (action != nullptr) reinstall_if_kept(number);  // claimed meanwhile
    if (old != nullptr) {
        *old = previous;
        store_bits(&old->sa_mask, to_program_mask(load_bits(previous.sa_mask)));
    }
    return 0;
}

int change_action(int number, const struct sigaction* action, struct sigaction* old) noexcept {
    DispositionCell* kept = find_kept_disposition(number);
    if (kept == nullptr) return change_other(number, action, old);
    const Disposition previous =
        action != nullptr ? exchange_kept(*kept, Disposition::from(*action)) : kept->read();
    if (old != nullptr) previous.copy_to(old);
    return 0;
}

// The signal() family for a kept signal.
sighandler_t change_handler(DispositionCell& kept, sighandler_t handler, uint32_t flags,
                            SignalBits mask) noexcept {
    if (handler == SIG_ERR) {
        errno = EINVAL;
        return SIG_ERR;
    }
    const Disposition previous =
        exchange_kept(kept, {reinterpret_cast<uintptr_t>(handler), mask, flags});
    return reinterpret_cast<sighandler_t>(previous.handler);
}

sighandler_t change_by_signal(int number, sighandler_t handler) noexcept {
    DispositionCell* kept = find_kept_disposition(number);
    if (kept != nullptr) return change_handler(*kept, handler, SA_RESTART, bit_of(number));
    sighandler_t previous = libc_signal(number, handler);
    if (previous != SIG_ERR) reinstall_if_kept(number);
    return previous;
}

sighandler_t change_by_sysv_signal(int number, sighandler_t handler) noexcept {
    DispositionCell* kept = find_kept_disposition(number);
    if (kept != nullptr) return change_handler(*kept, handler, SA_RESETHAND | SA_NODEFER, 0);
    sighandler_t previous = libc_sysv_signal(number, handler);
    if (previous != SIG_ERR) reinstall_if_kept(number);
    return previous;
}

}  // namespace

void resolve_action_functions() noexcept {
    libc_sigaction.resolve();
    libc_signal.resolve();
    libc_sysv_signal.resolve();
}

int next_sigaction(int number, const struct sigaction* action, struct sigaction* old) noexcept {
    return libc_sigaction(number, action, old);
}

}  // namespace hanare::hook

namespace hook = hanare::hook;

HANARE_WRAPPER int sigaction(int number, const struct sigaction* action,
                             struct sigaction* old) noexcept {
    return hook::change_action(number, action, old);
}

HANARE_WRAPPER int __sigaction(int number, const struct sigaction* action,
                               struct sigaction* old) noexcept {
    return hook::change_action(number, action, old);
}

HANARE_WRAPPER sighandler_t signal(int number, sighandler_t handler) noexcept {
    return hook::change_by_signal(number, handler);
}

HANARE_WRAPPER sighandler_t bsd_signal(int number, sighandler_t handler) noexcept {
    return hook::change_by_signal(number, handler);
}

HANARE_WRAPPER sighandler_t ssignal(int number, sighandler_t handler) noexcept {
    return hook::change_by_signal(number, handler);
}

HANARE_WRAPPER sighandler_t sysv_signal(int number, sighandler_t handler) noexcept {
    return hook::change_by_sysv_signal(number, handler);
}

HANARE_WRAPPER sighandler_t __sysv_signal(int number, sighandler_t handler) noexcept {
    return hook::change_by_sysv_signal(number, handler);
}

HANARE_WRAPPER int sigignore(int number) noexcept {
    struct sigaction action = {};
    action.sa_handler = SIG_IGN;
    return hook::change_action(number, &action, nullptr);
}

HANARE_WRAPPER sighandler_t sigset(int number, sighandler_t handler) noexcept {
    struct sigaction previous = {};
    sigset_t own = {};
    sigset_t blocked = {};
    if (sigaddset(&own, number) != 0) return SIG_ERR;
    if (handler == SIG_HOLD) {
        if (sigprocmask(SIG_BLOCK, &own, &blocked) != 0) return SIG_ERR;
        if (hook::change_action(number, nullptr, &previous) != 0) return SIG_ERR;
    } else {
        struct sigaction action = {};
        action.sa_handler = handler;
        if (hook::change_action(number, &action, &previous) != 0) return SIG_ERR;
        if (sigprocmask(SIG_UNBLOCK, &own, &blocked) != 0) return SIG_ERR;
    }
    return sigismember(&blocked, number) == 1 ? SIG_HOLD : previous.sa_handler;
}
