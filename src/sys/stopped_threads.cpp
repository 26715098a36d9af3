// SPDX-License-Identifier: Apache-2.0
//
// The helper shares the variables that the calling thread has of its own, errno for one: it calls
// the kernel by itself, and nothing of libc.
#include "sys/stopped_threads.hpp"

#include <fcntl.h>
#include <linux/ptrace.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>

#include "base/sanitizers.hpp"
#include "base/units.hpp"
#include "sys/clock.hpp"
#include "sys/futex.hpp"
#include "sys/raw_thread.hpp"

namespace hanare::sys {

namespace {

#if defined(HANARE_ASAN) || defined(HANARE_TSAN)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

constexpr size_t kStackBytes = 64 * kKiB;
constexpr uint64_t kTimeLimit_ms = 1000;

enum State : uint32_t { kPrepared, kMayTrace, kStopped, kFailed, kMayEnd };

template <typename A = int, typename B = int, typename C = int, typename D = int>
int64_t call(long number, A a = {}, B b = {}, C c = {}, D d = {}) noexcept {
    const auto bits = [](auto argument) {
        if constexpr (std::is_pointer_v<decltype(argument)>) {
            return reinterpret_cast<uint64_t>(argument);
        } else {
            return static_cast<uint64_t>(argument);
        }
    };
    return raw_call6(number, bits(a), bits(b), bits(c), bits(d), 0, 0);
}

struct DirectoryEntry {
    uint64_t inode;
    int64_t offset;
    uint16_t bytes;
    uint8_t type;
    char name[1];  // and what follows, with a zero at its end
};

// 0 for what is no number: "." and "..".
int number_of(const char* name) noexcept {
    int value = 0;
    for (; *name >= '0' && *name <= '9'; ++name) value = value * 10 + (*name - '0');
    return value;
}

}  // namespace

struct StoppedThreads::Helper {
    std::atomic<uint32_t> state{kPrepared};
    int process_id = 0;
    int caller_process_id = 0;
    int caller_id = 0;
    int failure = 0;  // an errno value
    size_t count = 0;
    StoppedThread threads[kThreadsMax] = {};
    char folder_name[32] = {};  // of the threads

    bool knows(int thread_id) const noexcept {
        for (size_t i = 0; i < count; ++i) {
            if (threads[i].thread_id == thread_id) return true;
        }
        return false;
    }

    int64_t trace(long request, int thread_id, uint64_t data = 0) const noexcept {
        return call(SYS_ptrace, request, thread_id, 0, data);
    }

    // 0, also for one that has ended meanwhile; `name` is its number in `folder`.
    int stop(int thread_id, int folder, const char* name) noexcept {
        if (count == kThreadsMax) return E2BIG;
        if (const int64_t seized = trace(PTRACE_SEIZE, thread_id); seized != 0) {
            return seized == -ESRCH || has_ended(folder, name) ? 0 : static_cast<int>(-seized);
        }
        if (trace(PTRACE_INTERRUPT, thread_id) != 0) return 0;
        int status = 0;
        int64_t waited = 0;
        do {
            waited = call(SYS_wait4, thread_id, &status, __WALL, 0);
        } while (waited == -EINTR);
        if (waited != thread_id || !WIFSTOPPED(status)) return 0;
        StoppedThread& stopped = threads[count++];
        stopped.thread_id = thread_id;
        // Else it is the stop that was asked for.
        if (status >> 16 == 0) stopped.signal_number = WSTOPSIG(status);
        const int64_t known =
            trace(PTRACE_GETREGS, thread_id, reinterpret_cast<uint64_t>(&stopped.registers));
        if (known != 0) --count;
        return known == -ESRCH ? 0 : static_cast<int>(-known);
    }

    // One that has may be listed for a while, or, the first, as long as the others live; it cannot
    // be traced.
    static bool has_ended(int folder, const char* name) noexcept {
        char path[32] = {};
        size_t length = 0;
        for (; length < 16 && name[length] != 0; ++length) path[length] = name[length];
        for (const char letter : {'/', 's', 't', 'a', 't'}) path[length++] = letter;
        const int64_t file = call(SYS_openat, folder, path, O_RDONLY | O_CLOEXEC);
        if (file < 0) return file == -ENOENT;
        char text[128];
        const int64_t bytes = call(SYS_read, file, text, sizeof text);
        call(SYS_close, file);
        if (bytes <= 0) return bytes == -ESRCH;
        int64_t at = bytes - 1;  // the state follows the name, which may have any letters
        while (at > 0 && text[at] != ')') --at;
        const char state = at > 0 && at + 2 < bytes ? text[at + 2] : '?';
        return state == 'Z' || state == 'X';
    }

    // Who stands still makes no threads: when all that were there do, and nobody else is, it ends.
    int stop_all() noexcept {
        for (size_t before = SIZE_MAX; before != count;) {
            before = count;
            const int64_t folder =
                call(SYS_openat, AT_FDCWD, folder_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            if (folder < 0) return static_cast<int>(-folder);
            const int error = stop_those_in(static_cast<int>(folder));
            call(SYS_close, folder);
            if (error != 0) return error;
        }
        return 0;
    }

    int stop_those_in(int folder) noexcept {
        alignas(DirectoryEntry) char entries[2048];
        for (;;) {
            const int64_t bytes = call(SYS_getdents64, folder, entries, sizeof entries);
            if (bytes <= 0) return static_cast<int>(-bytes);
            for (int64_t at = 0; at < bytes;) {
                const auto* const entry = reinterpret_cast<DirectoryEntry*>(entries + at);
                at += entry->bytes;
                const int thread_id = number_of(entry->name);
                if (thread_id == 0 || thread_id == caller_id || knows(thread_id)) continue;
                if (const int error = stop(thread_id, folder, entry->name); error != 0)
                    return error;
            }
        }
    }

    void let_all_go_on() noexcept {
        for (size_t i = 0; i < count; ++i) {
            StoppedThread& stopped = threads[i];
            if (stopped.is_moved) {
                trace(PTRACE_SETREGS, stopped.thread_id,
                      reinterpret_cast<uint64_t>(&stopped.registers));
            }
            trace(PTRACE_DETACH, stopped.thread_id, static_cast<uint64_t>(stopped.signal_number));
        }
    }

    void wait_for(State wanted) noexcept {
        for (uint32_t now = 0; (now = state.load()) != wanted;) {
            call(SYS_futex, &state, 128 /* FUTEX_WAIT_PRIVATE */, now, 0);
        }
    }
    void publish(State next) noexcept {
        state.store(next);
        call(SYS_futex, &state, 129 /* FUTEX_WAKE_PRIVATE */, INT32_MAX);
    }

    [[noreturn]] static void run(Helper* self) noexcept {
        call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
        // Who called may have ended before that.
        if (call(SYS_getppid) != self->caller_process_id) call(SYS_exit, 0);
        self->wait_for(kMayTrace);
        self->failure = self->stop_all();
        if (self->failure != 0) {
            self->let_all_go_on();
            self->publish(kFailed);
        } else {
            self->publish(kStopped);
            self->wait_for(kMayEnd);
            self->let_all_go_on();
        }
        for (;;) call(SYS_exit, 0);
    }

    int64_t start(std::byte* stack_end) noexcept {
        constexpr uint64_t kFlags = CLONE_VM;  // no signal tells its end
        register void (*entry)(Helper*) asm("r12") = &Helper::run;
        register Helper* self asm("r13") = this;
        int64_t result = SYS_clone;
        register uint64_t fourth asm("r10") = 0;
        register uint64_t fifth asm("r8") = 0;
        // It comes out with the same registers, on its own stack, and has no caller.
        asm volatile(
            "syscall\n\t"
            "test %%rax, %%rax\n\t"
            "jnz 1f\n\t"
            ".cfi_remember_state\n\t"
            ".cfi_undefined rip\n\t"
            "xor %%ebp, %%ebp\n\t"
            "mov %%r13, %%rdi\n\t"
            "call *%%r12\n\t"
            "ud2\n\t"
            ".cfi_restore_state\n"
            "1:"
            : "+a"(result)
            : "D"(kFlags), "S"(stack_end), "d"(nullptr), "r"(fourth), "r"(fifth), "r"(entry),
              "r"(self)
            : "rcx", "r11", "memory", "cc");
        return result;
    }
};

std::span<StoppedThread> StoppedThreads::threads() noexcept {
    if (memory_.address() == nullptr) return {};
    auto* const helper = reinterpret_cast<Helper*>(memory_.address());
    return {helper->threads, helper->count};
}

Result<void> StoppedThreads::stop() {
    if (kIsSanitized) {
        return fail(HANARE_STATUS_NOT_SUPPORTED, "a sanitizer has to know all processes");
    }
    const size_t own_bytes = round_up(sizeof(Helper), kOsPageBytes);
    HANARE_TRY_ASSIGN(auto memory, Mapping::reserve(own_bytes + kStackBytes, kOsPageBytes));
    auto* const helper = new (memory.address()) Helper;
    helper->caller_process_id = static_cast<int>(raw_process_id());
    helper->caller_id = static_cast<int>(raw_thread_id());
    std::snprintf(helper->folder_name, sizeof helper->folder_name, "/proc/%u/task",
                  raw_process_id());
    const int64_t started = helper->start(memory.address() + memory.bytes());
    if (started < 0) {
        return fail_errno(HANARE_STATUS_NOT_SUPPORTED, static_cast<int>(-started),
                          "cannot start who stops the other threads");
    }
    helper->process_id = static_cast<int>(started);
    memory_ = std::move(memory);
    // Where Yama asks for it; the kernel may not know the question.
    call(SYS_prctl, PR_SET_PTRACER, started);
    helper->publish(kMayTrace);
    const uint64_t until_ns = now_ns() + kTimeLimit_ms * 1'000'000;
    while (helper->state.load() == kMayTrace && now_ns() < until_ns) {
        futex_wait(helper->state, kMayTrace, static_cast<int>(kTimeLimit_ms));
    }
    const uint32_t state = helper->state.load();
    if (state == kStopped) return {};
    const int error = helper->failure;
    go_on();
    if (state != kFailed) {
        return fail(HANARE_STATUS_TIMEOUT, "a thread of the process does not stop");
    }
    return fail_errno(error == E2BIG ? HANARE_STATUS_LIMIT : HANARE_STATUS_NOT_SUPPORTED, error,
                      "cannot stop the other threads of the process by ptrace(2)");
}

void StoppedThreads::go_on() noexcept {
    if (memory_.address() == nullptr) return;
    auto* const helper = reinterpret_cast<Helper*>(memory_.address());
    const int process_id = helper->process_id;
    // One that waits for a thread would wait for ever; the kernel lets go of what it traces.
    if (helper->state.load() == kMayTrace) call(SYS_kill, process_id, SIGKILL);
    helper->publish(kMayEnd);
    int status = 0;
    while (call(SYS_wait4, process_id, &status, __WALL) == -EINTR) {
    }
    call(SYS_prctl, PR_SET_PTRACER, 0);
    memory_ = {};
}

}  // namespace hanare::sys
