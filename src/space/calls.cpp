// SPDX-License-Identifier: Apache-2.0
//
// Runs in tasks, in the place of their system calls: no libc, whose variables of a thread are those
// of another libc here, and no vector registers (hook/rewrite/system_call.hpp).
#include "space/calls.hpp"

#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>

#include "base/units.hpp"
#include "hook/rewrite/entry.hpp"
#include "hook/rewrite/system_call.hpp"
#include "space/code.hpp"
#include "space/copies.hpp"
#include "space/forks.hpp"
#include "space/shared_mappings.hpp"
#include "space/task_table.hpp"
#include "sys/raw_thread.hpp"

namespace hanare::space {

namespace {

using hook::SystemCall;
using hook::Verdict;

constexpr uint32_t kNumbers[] = {SYS_madvise,
                                 SYS_process_vm_readv,
                                 SYS_process_vm_writev,
                                 SYS_mmap,
                                 SYS_munmap,
                                 SYS_mremap,
                                 SYS_shmat,
                                 SYS_shmdt,
                                 SYS_shmctl,
                                 SYS_brk,
                                 SYS_readlink,
                                 SYS_fork,
                                 SYS_clone,
                                 SYS_clone3,
                                 SYS_execve,
                                 SYS_execveat};

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
    Task& task;
    Range place;
    int file;
    uint64_t offset;
};

void rewrite_new_code(void* context) {
    const auto& code = *static_cast<const NewCode*>(context);
    // It may fork by what is left.
    if (rewrite_code(code.task.partition, code.place, code.file, code.offset) != 0) {
        leave_alone(code.task);
    }
}

// What the kernel would put over another task.
bool takes_from_others(const Task& task, const SystemCall& call) noexcept {
    if ((call.arguments[3] & MAP_FIXED) == 0 || !TaskTable::is_here()) return false;
    const Range asked = {call.arguments[0], call.arguments[0] + call.arguments[1]};
    const Range own = task.partition.whole();
    const Range all = TaskTable::whole();
    const auto overlap = [&](Range range) {
        return asked.begin < range.end && asked.end > range.begin;
    };
    return overlap({all.begin, own.begin}) || overlap({own.end, all.end});
}

Verdict answer_mmap(Task& task, SystemCall& call) noexcept {
    if (takes_from_others(task, call)) return done(call, -ENOMEM);
    if ((call.arguments[3] & MAP_TYPE) == MAP_SHARED && TaskTable::is_here()) {
        const int64_t shared = SharedMappings::map(task, call.arguments);
        if (shared != 0) return done(call, shared);
    }
    const int64_t result = task.partition.map(call.arguments);
    if (result > 0 && maps_code(call)) {
        const auto begin = static_cast<uint64_t>(result);
        NewCode code = {task,
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

Verdict answer_shmat(Task& task, SystemCall& call) noexcept {
    const int64_t result = TaskTable::is_here() ? SharedMappings::attach(task, call.arguments) : 0;
    return result != 0 ? done(call, result) : Verdict::kNative;
}

Verdict answer_shmdt(Task& task, SystemCall& call) noexcept {
    if (!SharedMappings::contains(call.arguments[0]) || !TaskTable::is_here()) {
        return Verdict::kNative;
    }
    return done(call, SharedMappings::detach(task, call.arguments[0]));
}

// For the kernel those tasks that have a segment at one place have it once.
Verdict answer_shmctl(SystemCall& call) noexcept {
    const auto command = static_cast<int>(call.arguments[1]);
    const bool asks_by_place = command == SHM_STAT || command == SHM_STAT_ANY;
    if ((command != IPC_STAT && !asks_by_place) || !TaskTable::is_here()) return Verdict::kNative;
    const int64_t result = hook::raw_system_call(SYS_shmctl, call.arguments);
    if (result >= 0) {
        const auto segment =
            static_cast<uint32_t>(asks_by_place ? result : static_cast<int64_t>(call.arguments[0]));
        reinterpret_cast<shmid_ds*>(call.arguments[2])->shm_nattch +=
            SharedMappings::attached_beside(segment);
    }
    return done(call, result);
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

Verdict answer_fork(Task& task, SystemCall& call) noexcept {
    const Fork fork = fork_of(call);
    if (fork == Fork::kHere) return done(call, fork_task(task, call));
    if (fork == Fork::kElsewhere) leave_alone(task);
    return Verdict::kNative;
}

// Of the task itself, and not of a child on its way to a program.
Verdict answer_exec(Task& task, SystemCall& call) noexcept {
    if (!TaskTable::is_here() || sys::raw_process_id() != task.process) return Verdict::kNative;
    task.has_left = true;
    const int64_t failed = hook::raw_system_call(call.number, call.arguments);
    task.has_left = false;
    return done(call, failed);
}

Verdict answer_madvise(Task& task, const SystemCall& call) noexcept {
    if (call.arguments[2] == MADV_DONTFORK || call.arguments[2] == MADV_DOFORK) leave_alone(task);
    return Verdict::kNative;
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
        case SYS_shmat: return space::answer_shmat(*task, *call);
        case SYS_shmdt: return space::answer_shmdt(*task, *call);
        case SYS_shmctl: return space::answer_shmctl(*call);
        // There is one heap of this kind in the process; allocators then map memory.
        case SYS_brk:
            return space::done(*call,
                               static_cast<int64_t>(task->partition.whole().end - kOsPageBytes));
        case SYS_readlink: return space::answer_readlink(*task, *call);
        case SYS_process_vm_readv:
        case SYS_process_vm_writev: return space::answer_copy(*task, *call);
        case SYS_madvise: return space::answer_madvise(*task, *call);
        case SYS_fork:
        case SYS_clone:
        case SYS_clone3: return space::answer_fork(*task, *call);
        case SYS_execve:
        case SYS_execveat: return space::answer_exec(*task, *call);
        default: return Verdict::kNative;
    }
}

// No transfer begins at once here: nothing lets it.
extern "C" Verdict hanare_hook_dispatch_again(SystemCall* call, int64_t result) {
    call->finish(result);
    return Verdict::kDone;
}

}  // namespace hanare::hook
