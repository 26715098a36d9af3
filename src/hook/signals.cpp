// SPDX-License-Identifier: Apache-2.0
//
// The claims, and the handler that is installed for every kept signal.  It runs on the thread's
// alternate stack with all signals blocked; the program's handlers are called from it as the
// kernel would have called them.  Those may leave by siglongjmp, an exception or pthread_exit:
// nothing here holds anything while they run.
#include "hook/signals.hpp"

#include <ucontext.h>

#include <cerrno>
#include <mutex>

#include "hook/claims.hpp"
#include "hook/disposition.hpp"
#include "hook/kernel_signals.hpp"
#include "hook/signal_mask.hpp"
#include "hook/wrappers.hpp"
#include "sys/raw_thread.hpp"
#include "sys/signal.hpp"

namespace hanare::hook {

namespace {

// When the library is loaded: a handler may call a wrapper before any signal is claimed.
[[gnu::constructor]] void resolve_wrapped_functions() noexcept {
    resolve_action_functions();
    resolve_mask_functions();
    resolve_thread_functions();
}

constexpr int kSignalsMax = 64;
constexpr SignalBits kAllSignals = sys::kEverySignal;
constexpr size_t kReceiversMax = 2;  // of far memory, and of shared memory

struct Claim {
    std::atomic<SignalReceiver> receivers[kReceiversMax] = {};
    std::atomic<bool> kept{false};  // the wrappers record from now on
    DispositionCell signal;
    DispositionCell stand_in;
};

constexpr size_t kClaimableCount = sizeof kClaimable / sizeof kClaimable[0];
constinit Claim claims[kClaimableCount];

// A kept signal number: its claim, and whether it is the claim's stand-in.
struct Kept {
    Claim* claim = nullptr;
    const ClaimableSignal* pair = nullptr;
    bool is_stand_in = false;

    DispositionCell& disposition() const { return is_stand_in ? claim->stand_in : claim->signal; }
};

Kept find_kept(int signal_number) noexcept {
    for (size_t i = 0; i < kClaimableCount; ++i) {
        const bool is_stand_in = kClaimable[i].stand_in == signal_number;
        if (!is_stand_in && kClaimable[i].signal_number != signal_number) continue;
        if (!claims[i].kept.load(std::memory_order_acquire)) return {};
        return {&claims[i], &kClaimable[i], is_stand_in};
    }
    return {};
}

// Raised by the kernel for the instruction that was interrupted.
bool is_fault(const siginfo_t& info) noexcept {
    const bool is_memory_error_notice =
        info.si_signo == SIGBUS && info.si_code == BUS_MCEERR_AO;  // concerns no instruction
    return info.si_code > 0 && !is_memory_error_notice;
}

void call_handler(const Disposition& disposition, int signal_number, siginfo_t* info,
                  ucontext_t* context) {
    const SignalBits own = (disposition.flags & SA_NODEFER) != 0 ? 0 : bit_of(signal_number);
    const SignalBits interrupted = load_bits(context->uc_sigmask);
    store_bits(&context->uc_sigmask, to_program_mask(interrupted));
    set_thread_mask(interrupted | to_kernel_mask(disposition.mask | own));
    if ((disposition.flags & SA_SIGINFO) != 0) {
        reinterpret_cast<void (*)(int, siginfo_t*, void*)>(disposition.handler)(signal_number, info,
                                                                                context);
    } else {
        reinterpret_cast<void (*)(int)>(disposition.handler)(signal_number);
    }
    const int error = errno;
    set_thread_mask(kAllSignals);
    store_bits(&context->uc_sigmask, to_kernel_mask(load_bits(context->uc_sigmask)));
    errno = error;
}

// What the kernel would have done without the claim.
void deliver(int signal_number, siginfo_t* info, ucontext_t* context) {
    Kept kept = find_kept(signal_number);
    if (kept.claim == nullptr) return;
    if (kept.is_stand_in && release_held_back(info, kept.pair->signal_number)) {
        signal_number = kept.pair->signal_number;
        kept.is_stand_in = false;
    }
    const bool fault = is_fault(*info);
    const bool blocked =
        !kept.is_stand_in && (load_bits(context->uc_sigmask) & bit_of(kept.pair->stand_in)) != 0;
    if (blocked && !fault) return hold_back(*info, kept.pair->stand_in);
    if (blocked) return take_default_action(*info);  // force_sig(): a blocked fault kills
    const Disposition disposition = kept.disposition().take_for_delivery();
    if (disposition.is_ignore() && !fault) return;
    if (!disposition.has_handler()) return take_default_action(*info);
    call_handler(disposition, signal_number, info, context);
}

void on_signal(int signal_number, siginfo_t* info, void* context) {
    const int error = errno;
    const Kept kept = find_kept(signal_number);
    if (kept.claim != nullptr && !kept.is_stand_in && is_fault(*info)) {
        for (const auto& place : kept.claim->receivers) {
            const SignalReceiver receiver = place.load(std::memory_order_acquire);
            const bool done = receiver != nullptr && receiver(signal_number, info, context);
            errno = error;
            if (done) return;
        }
        signal_number = info->si_signo;
    }
    deliver(signal_number, info, static_cast<ucontext_t*>(context));
}

struct sigaction our_action() noexcept {
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    action.sa_mask = make_set(kAllSignals);
    return action;
}

int install(int signal_number, DispositionCell& disposition) noexcept {
    const struct sigaction ours = our_action();
    struct sigaction previous = {};
    if (next_sigaction(signal_number, &ours, &previous) != 0) return errno;
    const bool was_ours =
        (previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction == on_signal;
    if (!was_ours) disposition.exchange(Disposition::from(previous));
    return 0;
}

void record_current(int signal_number, DispositionCell& disposition) noexcept {
    struct sigaction current = {};
    if (next_sigaction(signal_number, nullptr, &current) == 0) {
        disposition.exchange(Disposition::from(current));
    }
}

// Handlers that the program installed before the claim may block the signals while they run.
void unblock_in_handlers(SignalBits claimed) noexcept {
    for (int number = 1; number <= kSignalsMax; ++number) {
        struct sigaction action = {};
        if (find_kept(number).claim != nullptr) continue;
        if (next_sigaction(number, nullptr, &action) != 0) continue;  // libc's own
        if (!Disposition::from(action).has_handler()) continue;
        const SignalBits mask = load_bits(action.sa_mask);
        if (to_kernel_mask(mask, claimed) == mask) continue;
        store_bits(&action.sa_mask, to_kernel_mask(mask, claimed));
        next_sigaction(number, &action, nullptr);
    }
}

}  // namespace

Disposition exchange_kept(DispositionCell& kept, const Disposition& wanted) noexcept {
    return sys::borrows_memory() ? kept.read() : kept.exchange(wanted);
}

DispositionCell* find_kept_disposition(int signal_number) noexcept {
    const Kept kept = find_kept(signal_number);
    return kept.claim != nullptr ? &kept.disposition() : nullptr;
}

bool is_own_handler(const void* handler) noexcept {
    return handler == reinterpret_cast<const void*>(on_signal);
}

void reinstall_if_kept(int signal_number) noexcept {
    const Kept kept = find_kept(signal_number);
    if (kept.claim != nullptr) install(signal_number, kept.disposition());
}

namespace {

// False: it has one, or there are others in all places.
bool take_place(Claim& claim, SignalReceiver receiver) {
    for (auto& place : claim.receivers) {
        SignalReceiver there = nullptr;
        if (place.compare_exchange_strong(there, receiver)) return true;
        if (there == receiver) return false;
    }
    return false;
}

// Installs the handler; blocked signals are the caller's to look after.
Result<void> begin_claim(int signal_number, SignalReceiver receiver) {
    static std::mutex one_at_a_time;
    const std::lock_guard guard(one_at_a_time);
    size_t index = 0;
    while (index < kClaimableCount && kClaimable[index].signal_number != signal_number) ++index;
    if (index == kClaimableCount) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "signal %d cannot be claimed (allowed: SIGBUS, SIGSEGV)", signal_number);
    }
    Claim& claim = claims[index];
    const ClaimableSignal& pair = kClaimable[index];
    if (!take_place(claim, receiver)) {
        return fail(HANARE_STATUS_BUSY, "signal %d is already claimed", signal_number);
    }
    if ((claimed_bits.load(std::memory_order_acquire) & bit_of(pair.signal_number)) != 0) return {};
    record_current(pair.signal_number, claim.signal);
    record_current(pair.stand_in, claim.stand_in);
    claim.kept.store(true, std::memory_order_release);
    for (const int number : {pair.stand_in, pair.signal_number}) {
        const int error = install(number, *find_kept_disposition(number));
        if (error != 0) {
            return fail_errno(HANARE_STATUS_SYSTEM, error, "sigaction of signal %d", number);
        }
    }
    claimed_bits.fetch_or(bit_of(pair.signal_number), std::memory_order_acq_rel);
    return {};
}

}  // namespace

Result<void> claim_signals(std::span<const int> signal_numbers, SignalReceiver receiver) {
    SignalBits claimed = 0;
    for (const int number : signal_numbers) {
        HANARE_TRY(begin_claim(number, receiver));
        claimed |= bit_of(number);
    }
    unblock_in_handlers(claimed);
    set_thread_mask(to_kernel_mask(thread_mask(), claimed));
    return {};
}

Result<void> claim_signal(int signal_number, SignalReceiver receiver) {
    return claim_signals({&signal_number, 1}, receiver);
}

}  // namespace hanare::hook
