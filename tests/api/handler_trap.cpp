// SPDX-License-Identifier: Apache-2.0
#include "api/handler_trap.hpp"

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <dlfcn.h>
#include <new>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "pager/fault/handler.hpp"
#include "sys/inject.hpp"

extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* memory);
}

namespace hanare::api_test {

namespace {

constinit std::atomic<uint64_t> calls{0};
constinit std::atomic<const char*> last_call{""};
constinit std::atomic<Provocation> provocation{Provocation::kNone};

void notice(const char* function) {
    if (!pager::in_fault_handler()) return;
    last_call = function;
    ++calls;
}

void misbehave(Provocation what) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static void* kept = nullptr;
    switch (what) {
        case Provocation::kNone: return;
        case Provocation::kMalloc: kept = std::malloc(16); return;
        case Provocation::kCalloc: kept = std::calloc(1, 16); return;
        case Provocation::kRealloc: kept = std::realloc(kept, 32); return;
        case Provocation::kFree: std::free(std::exchange(kept, nullptr)); return;
        case Provocation::kAligned: {
            if (posix_memalign(&kept, 64, 64) != 0) kept = nullptr;
            return;
        }
        case Provocation::kNew: kept = ::operator new(16); return;
        case Provocation::kLock: pthread_mutex_lock(&mutex); return;
        case Provocation::kTryLock:
            if (pthread_mutex_trylock(&mutex) != 0) pthread_mutex_unlock(&mutex);
            return;
    }
}

void misbehave_in_handler() {
    if (pager::in_fault_handler()) misbehave(provocation.exchange(Provocation::kNone));
}

using MutexFunction = int (*)(pthread_mutex_t*);

// dlsym may be needed before constructors run; it uses no function of ours.
MutexFunction next(std::atomic<MutexFunction>& cache, const char* name) {
    MutexFunction found = cache.load(std::memory_order_relaxed);
    if (found == nullptr) {
        found = reinterpret_cast<MutexFunction>(dlsym(RTLD_NEXT, name));
        cache.store(found, std::memory_order_relaxed);
    }
    return found;
}

constinit std::atomic<MutexFunction> next_lock{nullptr};
constinit std::atomic<MutexFunction> next_trylock{nullptr};
constinit std::atomic<MutexFunction> next_unlock{nullptr};

}  // namespace

uint64_t trapped_calls() { return calls; }
const char* last_trapped_call() { return last_call; }
// Moving a mapping is no call of libc's.
void provoke(Provocation what) {
    sys::inject::observe([](sys::inject::Call) noexcept { misbehave_in_handler(); });
    provocation = what;
}

}  // namespace hanare::api_test

namespace traps = hanare::api_test;

extern "C" {

void* malloc(size_t bytes) {
    traps::notice("malloc");
    return __libc_malloc(bytes);
}

void* calloc(size_t count, size_t bytes) {
    traps::notice("calloc");
    return __libc_calloc(count, bytes);
}

void* realloc(void* memory, size_t bytes) {
    traps::notice("realloc");
    return __libc_realloc(memory, bytes);
}

void free(void* memory) {
    traps::notice("free");
    __libc_free(memory);
}

int posix_memalign(void** memory, size_t alignment, size_t bytes) {
    traps::notice("posix_memalign");
    *memory = __libc_memalign(alignment, bytes);
    return *memory != nullptr ? 0 : ENOMEM;
}

void* aligned_alloc(size_t alignment, size_t bytes) {
    traps::notice("aligned_alloc");
    return __libc_memalign(alignment, bytes);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
    traps::notice("pthread_mutex_lock");
    return traps::next(traps::next_lock, "pthread_mutex_lock")(mutex);
}

int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
    traps::notice("pthread_mutex_trylock");
    return traps::next(traps::next_trylock, "pthread_mutex_trylock")(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
    traps::notice("pthread_mutex_unlock");
    return traps::next(traps::next_unlock, "pthread_mutex_unlock")(mutex);
}

// The engines' doors to the kernel, used as the places to misbehave at.
int ioctl(int descriptor, unsigned long request, ...) noexcept {
    va_list arguments;
    va_start(arguments, request);
    void* const argument = va_arg(arguments, void*);
    va_end(arguments);
    traps::misbehave_in_handler();
    return static_cast<int>(syscall(SYS_ioctl, descriptor, request, argument));
}

}  // extern "C"

void* operator new(size_t bytes) {
    traps::notice("operator new");
    if (void* memory = __libc_malloc(bytes)) return memory;
    throw std::bad_alloc();
}

void operator delete(void* memory) noexcept {
    traps::notice("operator delete");
    __libc_free(memory);
}

void operator delete(void* memory, size_t) noexcept { operator delete(memory); }
