// SPDX-License-Identifier: Apache-2.0
//
// x86-64: libc's variables of a thread lie below the address that register FS holds (the thread
// pointer), libc's own record of the thread at it and above.
#include "sys/bare_thread.hpp"

#include <algorithm>
#include <cstddef>
#include <dlfcn.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>

#include "base/sanitizers.hpp"
#include "base/units.hpp"
#include "sys/own_thread_id.hpp"
#include "sys/raw_thread.hpp"

namespace hanare::sys {

namespace {

#if defined(HANARE_ASAN) || defined(HANARE_TSAN)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

constexpr size_t kStackBytes = 256 * kKiB;
// More than libc's record of a thread has ever had (2,304 bytes in glibc 2.36).
constexpr size_t kRecordBytes = 16 * kKiB;

// Where libc's record begins with what compiled code reads.
struct Record {
    void* thread_pointer;
    void* table_of_variables;
    void* self;
    uint64_t is_one_of_several;
    uint64_t system_call;
    uint64_t stack_guard;
    uint64_t pointer_guard;
};
static_assert(offsetof(Record, stack_guard) == 0x28 && offsetof(Record, pointer_guard) == 0x30);

// libc's own means to make a thread.
struct LibcMeans {
    void (*sizes)(size_t* bytes, size_t* alignment);
    void* (*initialize)(void* record);
    void (*begin)();

    LibcMeans() {
        find(sizes, "_dl_get_tls_static_info");
        find(initialize, "_dl_allocate_tls");
        find(begin, "__ctype_init");
    }
    bool are_there() const { return sizes != nullptr && initialize != nullptr && begin != nullptr; }

private:
    template <typename Function>
    static void find(Function*& function, const char* name) {
        function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
    }
};

Record* current_record() noexcept {
    Record* record;
    asm("mov %%fs:0x10, %0" : "=r"(record));
    return record;
}

}  // namespace

Result<void> BareThread::prepare() {
    if (kIsSanitized) {
        return fail(HANARE_STATUS_NOT_SUPPORTED, "a sanitizer has to know all threads");
    }
    const LibcMeans libc;
    if (!libc.are_there()) {
        return fail(HANARE_STATUS_NOT_SUPPORTED,
                    "this libc keeps its threads' variables to itself");
    }
    size_t bytes = 0;
    size_t alignment = 0;
    libc.sizes(&bytes, &alignment);
    const size_t below = round_up(bytes, std::max<size_t>(alignment, kOsPageBytes));
    HANARE_TRY_ASSIGN(variables_, Mapping::reserve(below + kRecordBytes,
                                                   std::max<size_t>(alignment, kOsPageBytes)));
    HANARE_TRY_ASSIGN(stack_, Mapping::reserve(kStackBytes, kOsPageBytes));
    auto* const record = reinterpret_cast<Record*>(variables_.address() + below);
    if (libc.initialize(record) == nullptr) {
        return fail(HANARE_STATUS_NO_MEMORY, "no memory for a thread's variables");
    }
    record->thread_pointer = record->self = record;
    record->is_one_of_several = 1;
    record->stack_guard = current_record()->stack_guard;
    record->pointer_guard = current_record()->pointer_guard;
    const int64_t known = raw_call3(SYS_sched_getaffinity, 0, sizeof affinity_,
                                    reinterpret_cast<uint64_t>(affinity_));
    affinity_bytes_ = known > 0 ? static_cast<size_t>(known) : 0;
    begin_in_libc_ = libc.begin;
    thread_pointer_ = reinterpret_cast<std::byte*>(record);
    return {};
}

void BareThread::begin(BareThread* self) noexcept {
    self->begin_in_libc_();
    forget_own_thread_id();
    // The thread that starts it may be bound to a processor.
    if (self->affinity_bytes_ > 0) {
        raw_call3(SYS_sched_setaffinity, 0, self->affinity_bytes_,
                  reinterpret_cast<uint64_t>(self->affinity_));
    }
    self->body_(self->argument_);
    for (;;) raw_call3(SYS_exit, 0, 0, 0);
}

int BareThread::start(void (*body)(void* argument), void* argument) noexcept {
    constexpr uint64_t kFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                                CLONE_SYSVSEM | CLONE_SETTLS | CLONE_CHILD_CLEARTID;
    body_ = body;
    argument_ = argument;
    runs_.store(1);
    register std::atomic<uint32_t>* cleared asm("r10") = &runs_;
    register std::byte* thread_pointer asm("r8") = thread_pointer_;
    register void (*entry)(BareThread*) asm("r12") = &BareThread::begin;
    register BareThread* self asm("r13") = this;
    int64_t result = SYS_clone;
    // The new thread comes out with the same registers, on its own stack, and has no caller.
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
        : "D"(kFlags), "S"(stack_.address() + stack_.bytes()), "d"(nullptr), "r"(cleared),
          "r"(thread_pointer), "r"(entry), "r"(self)
        : "rcx", "r11", "memory", "cc");
    if (result > 0) return 0;
    runs_.store(0);
    return static_cast<int>(-result);
}

void BareThread::join() noexcept {
    // Not a private futex: that is how the kernel wakes.
    while (runs_.load() != 0) {
        raw_call6(SYS_futex, reinterpret_cast<uint64_t>(&runs_), FUTEX_WAIT, 1, 0, 0, 0);
    }
}

}  // namespace hanare::sys
