// SPDX-License-Identifier: Apache-2.0
//
// Threads that are left in the middle of a system call with a far buffer, as by an asynchronous
// cancellation: behind each instruction of it that is not the program's, one after the other, and
// each time their destructors run.  The processor stops behind every instruction (trap flag).
#include "far.h"

#include <fcntl.h>
#include <ucontext.h>

extern "C" const char __executable_start[], etext[];

namespace {

constexpr size_t kBytes = 100;
constexpr int kStepsMax = 100000;

int zeros = -1;
unsigned char* target = nullptr;
int leaves_at = 0;
int steps = 0;
int destroyed = 0;

struct Counted {
    ~Counted() { ++destroyed; }
};

void on_step(int, siginfo_t*, void* context) {
    const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    const auto at = static_cast<uintptr_t>(registers[REG_RIP]);
    const bool is_own = at >= reinterpret_cast<uintptr_t>(__executable_start) &&
                        at < reinterpret_cast<uintptr_t>(etext);
    if (!is_own && steps++ == leaves_at) pthread_exit(nullptr);
}

__attribute__((noinline)) ssize_t read_in_steps() {
    const Counted inner;
    asm volatile(
        "leaq -128(%%rsp), %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n"
        "leaq 128(%%rsp), %%rsp" ::
            : "cc", "memory");
    const ssize_t got = read(zeros, target + 1, kBytes);
    asm volatile(
        "leaq -128(%%rsp), %%rsp\n pushfq\n andq $~0x100, (%%rsp)\n popfq\n"
        "leaq 128(%%rsp), %%rsp" ::
            : "cc", "memory");
    return got;
}

// Returns where the system call has come to its end.
void* run(void*) {
    const Counted outer;
    CHECK(read(zeros, target, kBytes) == kBytes);  // this thread has been here before
    CHECK(read_in_steps() == kBytes);
    return target;
}

}  // namespace

int main() {
    zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    target = static_cast<unsigned char*>(malloc(64 * MIB));
    CHECK(zeros >= 0 && target != nullptr);
    memset(target, 1, 64 * MIB);
    struct sigaction action = {};
    action.sa_sigaction = on_step;
    action.sa_flags = SA_SIGINFO;
    CHECK(sigaction(SIGTRAP, &action, nullptr) == 0);
    void* result = nullptr;
    for (leaves_at = 0; leaves_at < kStepsMax && result == nullptr; ++leaves_at) {
        steps = destroyed = 0;
        pthread_t thread;
        CHECK(pthread_create(&thread, nullptr, run, nullptr) == 0);
        CHECK(pthread_join(thread, &result) == 0);
        CHECK(destroyed == 2);
    }
    CHECK(result == target && leaves_at > 2);
    printf("cancel_anywhere\n");
    return 0;
}
