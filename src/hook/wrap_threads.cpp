// SPDX-License-Identifier: Apache-2.0
//
// pthread_create and thrd_create: the new thread begins with the claimed signals unblocked and on
// an alternate signal stack, unless it has one.  A record at the top of the stack's mapping carries
// the thread's own function, so that nothing else is allocated.
//
// The stack is freed by a thread-specific-data destructor, which runs however the thread ends.  It
// waits for the last round but one, so that the program's own destructors still have the stack; in
// the last round a sanitizer's run-time says good-bye to the thread.
#include <climits>
#include <csignal>
#include <pthread.h>
#include <threads.h>

#include <cerrno>
#include <cstddef>
#include <new>

#include "base/sanitizers.hpp"
#include "hook/next_function.hpp"
#include "hook/signal_mask.hpp"
#include "hook/wrappers.hpp"
#include "sys/signal_stack.hpp"

#define HANARE_WRAPPER extern "C" [[gnu::visibility("default")]]

namespace hanare::hook {

namespace {

// The receiver's need (below 16 KiB), twice for a fault inside a chained handler, and room for
// that handler, which without Hanare might have had the thread's whole stack.
constexpr size_t kHandlerBytes = size_t{64} << 10;

constexpr int kRoundsBeforeFree = PTHREAD_DESTRUCTOR_ITERATIONS - 1;

constinit NextFunction<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>
    libc_pthread_create("pthread_create");
constinit NextFunction<int(thrd_t*, thrd_start_t, void*)> libc_thrd_create("thrd_create");

// Lies at the end of the mapping whose lower part is the alternate stack.
struct ThreadRecord {
    union {
        void* (*posix)(void*);
        thrd_start_t c11;
    } function;
    void* argument;
    std::byte* stack;
    size_t mapping_bytes;
    int rounds_left;

    size_t stack_bytes() const {
        return static_cast<size_t>(reinterpret_cast<const std::byte*>(this) - stack);
    }
};

ThreadRecord* make_record(void* argument) noexcept {
    static const size_t bytes = sys::signal_stack_bytes(kHandlerBytes);
    auto* stack = static_cast<std::byte*>(sys::map_signal_stack(bytes));
    if (stack == nullptr) return nullptr;
    return new (stack + bytes - sizeof(ThreadRecord))
        ThreadRecord{{}, argument, stack, bytes, kRoundsBeforeFree};
}

void free_record(ThreadRecord* record) noexcept {
    sys::unmap_signal_stack(record->stack, record->mapping_bytes);
}

pthread_key_t record_key;
bool record_key_made = false;

void leave_thread(void* pointer) noexcept {
    base::forget_cancelled_frames();
    auto* record = static_cast<ThreadRecord*>(pointer);
    if (--record->rounds_left > 0 && pthread_setspecific(record_key, record) == 0) return;
    stack_t current = {};
    sigaltstack(nullptr, &current);
    if (current.ss_sp == record->stack) {
        stack_t none = {};
        none.ss_flags = SS_DISABLE;
        sigaltstack(&none, nullptr);
    }
    free_record(record);
}

void make_record_key() noexcept {
    record_key_made = pthread_key_create(&record_key, leave_thread) == 0;
}

// True when the thread lives on the record's stack from now on.
bool install_stack(ThreadRecord* record) noexcept {
    // Not pthread_once: ThreadSanitizer's would run before ThreadSanitizer knows this thread.
    static once_flag once = ONCE_FLAG_INIT;
    call_once(&once, make_record_key);
    stack_t current = {};
    if (!record_key_made || sigaltstack(nullptr, &current) != 0) return false;
    if ((current.ss_flags & SS_DISABLE) == 0) return false;
    if (pthread_setspecific(record_key, record) != 0) return false;
    stack_t ours = {};
    ours.ss_sp = record->stack;
    ours.ss_size = record->stack_bytes();
    if (sigaltstack(&ours, nullptr) == 0) return true;
    pthread_setspecific(record_key, nullptr);
    return false;
}

// The mask comes from the creating thread or from the thread's attributes, past our wrappers.
void unblock_claimed_signals() noexcept {
    const SignalBits claimed = claimed_bits.load(std::memory_order_acquire);
    if (claimed == 0) return;
    const SignalBits mask = thread_mask();
    if ((claimed & mask) != 0) set_thread_mask(to_kernel_mask(mask, claimed & mask));
}

// Frees the record unless the thread lives on its stack.
void enter_thread(ThreadRecord* record) noexcept {
    if (!install_stack(record)) free_record(record);
    unblock_claimed_signals();
}

// These two must not have locals in memory: pthread_exit and cancellation unwind past them, and
// the address sanitizer would leave their red zones behind.
void* run_posix_thread(void* pointer) {
    auto* record = static_cast<ThreadRecord*>(pointer);
    void* (*const function)(void*) = record->function.posix;
    void* const argument = record->argument;
    enter_thread(record);
    return function(argument);
}

int run_c11_thread(void* pointer) {
    auto* record = static_cast<ThreadRecord*>(pointer);
    const thrd_start_t function = record->function.c11;
    void* const argument = record->argument;
    enter_thread(record);
    return function(argument);
}

}  // namespace

void resolve_thread_functions() noexcept {
    libc_pthread_create.resolve();
    libc_thrd_create.resolve();
}

}  // namespace hanare::hook

namespace hook = hanare::hook;

HANARE_WRAPPER int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                  void* (*function)(void*), void* argument) noexcept {
    hook::ThreadRecord* record = hook::make_record(argument);
    if (record == nullptr) return EAGAIN;
    record->function.posix = function;
    const int error = hook::libc_pthread_create(thread, attributes, hook::run_posix_thread, record);
    if (error != 0) hook::free_record(record);
    return error;
}

HANARE_WRAPPER int thrd_create(thrd_t* thread, thrd_start_t function, void* argument) {
    hook::ThreadRecord* record = hook::make_record(argument);
    if (record == nullptr) return thrd_nomem;
    record->function.c11 = function;
    const int error = hook::libc_thrd_create(thread, hook::run_c11_thread, record);
    if (error != thrd_success) hook::free_record(record);
    return error;
}
