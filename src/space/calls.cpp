// SPDX-License-Identifier: Apache-2.0
//
// Runs in tasks, in the place of their system calls: no libc, whose variables of a thread are those
// of another libc here, and no vector registers (hook/rewrite/system_call.hpp).
#include "space/calls.hpp"

#include <linux/sched.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

#include <cstring>

#include "base/units.hpp"
#include "hook/rewrite/entry.hpp"
#include "hook/rewrite/system_call.hpp"
#include "space/code.hpp"
#include "space/shared_mappings.hpp"
#include "space/task_table.hpp"
#include "sys/raw_thread.hpp"

namespace hanare::space {

namespace {

using hook::SystemCall;
using hook::Verdict;

constexpr uint32_t kNumbers[] = {SYS_process_vm_readv,
                                 SYS_process_vm_writev,
                                 SYS_mmap,
                                 SYS_munmap,
                                 SYS_mremap,
                                 SYS_brk,
                                 SYS_readlink,
                                 SYS_fork,
                                 SYS_clone,
                                 SYS_clone3};

Verdict done(SystemCall& call, int64_t result) noexcept {
    call.finish(result);
    return Verdict::kDone;
}

// An mmap of what will run.
bool maps_code(const SystemCall& call) noexcept {
    constexpr uint64_t kAnonymous = MAP_ANONYMOUS;
    return (call.arguments[2] & (PROT_EXEC | PROT_WRITE)) == PROT_EXEC &&
           (call.arguments[3] & kAnonymous) == 0 && (call.arguments[3] & MAP_TYPE) == MAP_PRIVATE;
}

struct NewCode {
    Partition& partition;
    Range place;
    int file;
    uint64_t offset;
};

void rewrite_new_code(void* context) {
    const auto& code = *static_cast<const NewCode*>(context);
    rewrite_code(code.partition, code.place, code.file, code.offset);
}

Verdict answer_mmap(Task& task, SystemCall& call) noexcept {
    if ((call.arguments[3] & MAP_TYPE) == MAP_SHARED && TaskTable::is_here()) {
        const int64_t shared = SharedMappings::map(task, call.arguments);
        if (shared != 0) return done(call, shared);
    }
    const int64_t result = task.partition.map(call.arguments);
    if (result > 0 && maps_code(call)) {
        const auto begin = static_cast<uint64_t>(result);
        NewCode code = {task.partition,
                        {begin, begin + call.arguments[1]},
                        static_cast<int>(call.arguments[4]),
                        call.arguments[5]};
        hook::hanare_hook_with_vector_registers(rewrite_new_code, &code);
    }
    return done(call, result);
}

Verdict answer_munmap(Task& task, SystemCall& call) noexcept {
    if (SharedMappings::contains(call.arguments[0]) && TaskTable::is_here()) {
        return done(call, SharedMappings::unmap(task, call.arguments));
    }
    return done(call, task.partition.unmap(call.arguments));
}

// What others have as well stays where it is.
Verdict answer_mremap(Task& task, SystemCall& call) noexcept {
    if (SharedMappings::contains(call.arguments[0]) && TaskTable::is_here()) {
        return done(call, -ENOMEM);
    }
    return done(call, task.partition.remap(call.arguments));
}

bool is_own_program(const char* path) noexcept {
    constexpr char kPath[] = "/proc/self/exe";
    for (size_t i = 0; i < sizeof kPath; ++i) {
        if (path[i] != kPath[i]) return false;
    }
    return true;
}

// The program is the root's for the kernel.
Verdict answer_readlink(const Task& task, SystemCall& call) noexcept {
    const auto* const path = reinterpret_cast<const char*>(call.arguments[0]);
    // Asked first, so that a bad address is the kernel's to judge.
    const int64_t result = hook::raw_system_call(SYS_readlink, call.arguments);
    if (result <= 0 || !is_own_program(path)) return done(call, result);
    auto* const room = reinterpret_cast<char*>(call.arguments[1]);
    uint64_t bytes = 0;
    for (; bytes < call.arguments[2] && task.program[bytes] != '\0'; ++bytes) {
        room[bytes] = task.program[bytes];
    }
    return done(call, static_cast<int64_t>(bytes));
}

// Copies from one list of pieces to another, as far as the shorter one goes.
class Copying {
public:
    Copying(const iovec* to, uint64_t to_count, const iovec* from, uint64_t from_count) noexcept
        : to_{to, to_count}, from_{from, from_count} {}

    // The bytes copied.
    int64_t run() noexcept {
        int64_t all = 0;
        for (;;) {
            const size_t left_to = to_.left();
            const size_t left_from = from_.left();
            if (left_to == 0 || left_from == 0) return all;
            const size_t bytes = left_to < left_from ? left_to : left_from;
            copy(to_.place(), from_.place(), bytes);
            to_.pass(bytes);
            from_.pass(bytes);
            all += static_cast<int64_t>(bytes);
        }
    }

private:
    class List {
    public:
        List(const iovec* pieces, uint64_t count) noexcept : pieces_(pieces), count_(count) {}
        // Of the first piece that is not used up; 0 behind the last.
        size_t left() noexcept {
            while (count_ > 0 && pieces_->iov_len == used_) {
                ++pieces_;
                --count_;
                used_ = 0;
            }
            return count_ > 0 ? pieces_->iov_len - used_ : 0;
        }
        std::byte* place() const noexcept {
            return static_cast<std::byte*>(pieces_->iov_base) + used_;
        }
        void pass(size_t bytes) noexcept { used_ += bytes; }

    private:
        const iovec* pieces_;
        uint64_t count_;
        size_t used_ = 0;
    };
    struct Piece {
        std::byte* to;
        const std::byte* from;
        size_t bytes;
    };

    // Saving vector registers takes as long as some KiB.
    static constexpr size_t kByBytesMax = 4096;

    static void copy(std::byte* to, const std::byte* from, size_t bytes) noexcept {
        if (bytes <= kByBytesMax) {
            asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
            return;
        }
        Piece piece = {to, from, bytes};
        hook::hanare_hook_with_vector_registers(
            [](void* context) {
                const auto& whole = *static_cast<const Piece*>(context);
                std::memcpy(whole.to, whole.from, whole.bytes);
            },
            &piece);
    }

    List to_;
    List from_;
};

// A task that has become another program by exec is none any more, and has nothing there.
bool are_of_task(const Task& task, const iovec* pieces, uint64_t count) noexcept {
    for (uint64_t i = 0; i < count; ++i) {
        const auto begin = reinterpret_cast<uint64_t>(pieces[i].iov_base);
        const uint64_t end = begin + pieces[i].iov_len;
        const bool is_own = task.partition.contains(begin) && end <= task.partition.whole().end;
        const bool is_shared = SharedMappings::contains(begin) && SharedMappings::contains(end - 1);
        if (end < begin || (!is_own && !is_shared && begin != end)) return false;
    }
    return true;
}

// Between tasks of the space, what the kernel would copy from one memory to the other lies in one.
Verdict answer_copy(SystemCall& call) noexcept {
    constexpr uint64_t kPiecesMax = 1024;  // of the kernel
    const auto& arguments = call.arguments;
    const Task* other = nullptr;
    const bool is_usual =
        arguments[5] == 0 && arguments[2] <= kPiecesMax && arguments[4] <= kPiecesMax;
    if (!is_usual || !TaskTable::is_here() ||
        (other = TaskTable::of_process(static_cast<uint32_t>(arguments[0]))) == nullptr) {
        return Verdict::kNative;
    }
    const auto* const own = reinterpret_cast<const iovec*>(arguments[1]);
    const auto* const theirs = reinterpret_cast<const iovec*>(arguments[3]);
    if (!are_of_task(*other, theirs, arguments[4])) return Verdict::kNative;
    Copying copying = call.number == SYS_process_vm_readv
                          ? Copying(own, arguments[2], theirs, arguments[4])
                          : Copying(theirs, arguments[4], own, arguments[2]);
    return done(call, copying.run());
}

// On the stack of the caller: on one of its own it could not come back through here.
bool is_fork(const SystemCall& call) noexcept {
    if (call.number == SYS_fork) return true;
    uint64_t flags = call.arguments[0];
    uint64_t stack = call.arguments[1];
    if (call.number == SYS_clone3) {
        const auto& asked = *reinterpret_cast<const clone_args*>(call.arguments[0]);
        flags = asked.flags;
        stack = asked.stack;
    }
    return (flags & CLONE_VM) == 0 && stack == 0;
}

// The child must find the partition as if nobody were changing it.
Verdict answer_fork(Task& task, SystemCall& call) noexcept {
    if (!is_fork(call)) return Verdict::kNative;
    const TurnGuard guard(task.partition.turn());
    return done(call, hook::raw_system_call(call.number, call.arguments));
}

}  // namespace

bool is_answered(uint32_t number) noexcept {
    return std::find(std::begin(kNumbers), std::end(kNumbers), number) != std::end(kNumbers);
}

void begin_answers() noexcept {
    for (const uint32_t number : kNumbers) {
        hook::hanare_hook_wanted[number] = static_cast<uint8_t>(hook::Wanted::kAlways);
    }
}

}  // namespace hanare::space

namespace hanare::hook {

extern "C" Verdict hanare_hook_dispatch(SystemCall* call) {
    space::Task* const task = space::TaskTable::around(reinterpret_cast<uint64_t>(call->caller));
    if (task == nullptr) return Verdict::kNative;
    switch (call->number) {
        case SYS_mmap: return space::answer_mmap(*task, *call);
        case SYS_munmap: return space::answer_munmap(*task, *call);
        case SYS_mremap: return space::answer_mremap(*task, *call);
        // There is one heap of this kind in the process; allocators then map memory.
        case SYS_brk:
            return space::done(*call,
                               static_cast<int64_t>(task->partition.whole().end - kOsPageBytes));
        case SYS_readlink: return space::answer_readlink(*task, *call);
        case SYS_process_vm_readv:
        case SYS_process_vm_writev: return space::answer_copy(*call);
        case SYS_fork:
        case SYS_clone:
        case SYS_clone3: return space::answer_fork(*task, *call);
        default: return Verdict::kNative;
    }
}

}  // namespace hanare::hook
