// SPDX-License-Identifier: Apache-2.0
//
// What happens in the place of each system call.  Compiled for general registers only; what needs
// more is called with the program's vector registers saved.  Not noexcept where the program may be
// cancelled.
#include "intercept/handler.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "intercept/bounce.hpp"
#include "intercept/buffer_call.hpp"
#include "intercept/far_arguments.hpp"
#include "intercept/file_kinds.hpp"
#include "intercept/forks.hpp"
#include "intercept/may_read.hpp"
#include "intercept/signal_actions.hpp"
#include "pager/fault/handler.hpp"
#include "pager/fault/region.hpp"
#include "sys/other_stack.hpp"
#include "sys/own_descriptors.hpp"
#include "sys/signal.hpp"
#include "sys/thread_count.hpp"

namespace hanare::intercept {

using hook::SystemCall;
using hook::Verdict;

namespace {

constinit Space* the_space = nullptr;
constinit BufferCalls buffer_calls;

// One call of the space's, made with vector registers saved.
struct SpaceCall {
    SystemCall& call;
    int64_t result;
};

int protection_of(const SystemCall& call) { return static_cast<int>(call.arguments[2]); }

void answer(void* context) {
    auto& asked = *static_cast<SpaceCall*>(context);
    const uint64_t(&a)[6] = asked.call.arguments;
    Space& space = *the_space;
    switch (asked.call.number) {
        case SYS_brk: asked.result = space.brk(a[0]); break;
        case SYS_mmap:
            asked.result = space.mmap(a[0], a[1], protection_of(asked.call), static_cast<int>(a[3]),
                                      static_cast<int>(a[4]), static_cast<int64_t>(a[5]));
            break;
        case SYS_munmap: asked.result = space.munmap(a[0], a[1]); break;
        case SYS_mprotect:
        case SYS_pkey_mprotect:
            asked.result = space.mprotect(a[0], a[1], protection_of(asked.call));
            break;
        case SYS_mremap:
            asked.result = space.mremap(a[0], a[1], a[2], static_cast<int>(a[3]), a[4]);
            break;
        case SYS_madvise: asked.result = space.madvise(a[0], a[1], static_cast<int>(a[2])); break;
        case SYS_msync: asked.result = space.msync(a[0], a[1], static_cast<int>(a[2])); break;
        default: asked.result = space.ignore(a[0], a[1]); break;
    }
}

struct StackRequest {
    std::byte* at;
    std::byte* other_stack;  // nullptr: it is not the thread's own
};

void keep_stack(void* context) {
    const auto& request = *static_cast<const StackRequest*>(context);
    const sys::SignalBlockButFaults signals;  // a handler may never come back
    const auto keep = [](void* at) { pager::keep_stack_at(static_cast<const std::byte*>(at)); };
    if (request.other_stack != nullptr) {
        sys::call_on_stack(request.other_stack, keep, request.at);
    } else {
        keep(request.at);
    }
}

bool is_kept(std::byte* stack) {
    bool is_kept = false;
    const auto address = reinterpret_cast<uintptr_t>(stack);
    const FarMemory& memory = *the_space;
    memory.for_each_part(address, address + 1, [&](size_t index, uintptr_t, uintptr_t) {
        const pager::Region* const region = the_space->lasting_region(index);
        is_kept = region != nullptr && (region->access_of(region->index_of(stack)).load() &
                                        pager::block_access::kStack) != 0;
    });
    return is_kept;
}

// A block that becomes whole is unmapped for a moment, and with it the stack that the thread is on.
void keep_own_stack(const SystemCall& call) {
    constexpr size_t kStackBytes = 24 << 10;
    if (is_kept(call.stack)) return;
    BounceFrame bounce(reinterpret_cast<uintptr_t>(call.stack));
    std::byte* const memory = bounce.take(kStackBytes);
    StackRequest request{call.stack, memory == nullptr ? nullptr : memory + kStackBytes};
    hook::hanare_hook_with_vector_registers(keep_stack, &request);
    bounce.leave();
}

void keep_signal_stack(std::byte* at) {
    StackRequest request{at, nullptr};
    hook::hanare_hook_with_vector_registers(keep_stack, &request);
}

// Whether a call that maps memory can concern the space, by comparisons only.
bool concerns_space(const SystemCall& call) {
    const uint64_t(&a)[6] = call.arguments;
    switch (call.number) {
        case SYS_brk: return true;
        case SYS_mmap:
            if ((a[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0) {
                return the_space->overlaps(a[0], a[0] + a[1]);
            }
            return (a[3] & MAP_ANONYMOUS) != 0 && a[1] >= the_space->threshold_bytes();
        case SYS_mremap:
            return the_space->overlaps(a[0], a[0] + a[1]) ||
                   ((a[3] & MREMAP_FIXED) != 0 && the_space->overlaps(a[4], a[4] + a[2]));
        default: return the_space->overlaps(a[0], a[0] + a[1] + 1);
    }
}

void call_keeper(void*) {
    if (the_space->hooks().needs_keeper == nullptr) return;
    const sys::SignalBlockButFaults signals;
    the_space->hooks().needs_keeper();
}

// Private memory that the kernel is about to map for the program.
uint64_t plain_bytes(const SystemCall& call) {
    const uint64_t(&a)[6] = call.arguments;
    const bool is_private = (a[3] & MAP_TYPE) == MAP_PRIVATE;
    const bool is_written = (a[3] & MAP_ANONYMOUS) != 0 || (a[2] & PROT_WRITE) != 0;
    if (call.number == SYS_mmap) return is_private && is_written ? a[1] : 0;
    return call.number == SYS_mremap && a[2] > a[1] ? a[2] - a[1] : 0;
}

Verdict handle_memory(SystemCall& call) {
    SpaceCall asked{call, kKernelAnswers};
    if (concerns_space(call)) hook::hanare_hook_with_vector_registers(answer, &asked);
    if (asked.result == kKernelAnswers) {
        if (the_space->note_plain(plain_bytes(call))) {
            hook::hanare_hook_with_vector_registers(call_keeper, nullptr);
        }
        return Verdict::kNative;
    }
    call.finish(asked.result);
    return Verdict::kDone;
}

constexpr uint64_t kFaultBits = (uint64_t{1} << (SIGBUS - 1)) | (uint64_t{1} << (SIGSEGV - 1));

// As to_kernel_mask() (hook/signal_mask.hpp) has it for masks that do not come from the program.
uint64_t without_faults(uint64_t mask) {
    constexpr uint64_t kStandIns = (uint64_t{1} << (SIGSTKFLT - 1)) | (uint64_t{1} << (63 - 1));
    return (mask & kFaultBits) != 0 ? (mask & ~kFaultBits) | kStandIns : mask;
}

Verdict handle_mask(SystemCall& call) {
    const auto how = static_cast<int>(call.arguments[0]);
    const auto* mask = reinterpret_cast<const uint64_t*>(call.arguments[1]);
    const bool may_block =
        (how == SIG_BLOCK || how == SIG_SETMASK) && call.arguments[3] == sizeof *mask;
    if (!may_block || !may_read(*the_space, call, call.arguments[1], sizeof *mask) ||
        (*mask & kFaultBits) == 0) {
        return handle_arguments(call);
    }
    const uint64_t kept = without_faults(*mask);
    SystemCall changed = call;
    changed.arguments[1] = reinterpret_cast<uint64_t>(&kept);
    if (handle_arguments(changed) == Verdict::kNative) {
        changed.finish(hook::raw_system_call(SYS_rt_sigprocmask, changed.arguments));
    }
    call.number = changed.number;
    return Verdict::kDone;
}

// Not in the handler by which libc makes other threads change: it may interrupt one that holds what
// others wait for, and libc's caller changes last.
void tell_identity(void*) {
    if (the_space->hooks().has_other_identity == nullptr || sys::is_in_change_of_user()) return;
    const sys::SignalBlockButFaults signals;
    the_space->hooks().has_other_identity();
}

// A thread of Hanare's own is none of libc's, which makes all of those change.
Verdict handle_identity(SystemCall& call) {
    if (handle_arguments(call) == Verdict::kNative) {
        call.finish(hook::raw_system_call(call.number, call.arguments));
    }
    const auto result = static_cast<int64_t>(call.number);
    if (result >= 0) hook::hanare_hook_with_vector_registers(tell_identity, nullptr);
    return Verdict::kDone;
}

// Programs that close all descriptors they may have do not know of Hanare's.  The upper half of an
// int's register is anything.
Verdict handle_close(SystemCall& call) {
    const bool is_close = call.number == SYS_close;
    const auto number = static_cast<uint32_t>(call.arguments[is_close ? 0 : 1]);
    if (sys::own_descriptors.contain(static_cast<int>(number))) {
        call.finish(is_close ? -EBADF : -EBUSY);
        return Verdict::kDone;
    }
    begin_to_change_files(number, number);
    call.finish(hook::raw_system_call(call.number, call.arguments));
    end_changing_files();
    return Verdict::kDone;
}

// A close_range: what lies between Hanare's.
int64_t close_between_own(const SystemCall& call) {
    const auto last = static_cast<uint32_t>(call.arguments[1]);
    constexpr uint64_t kCloseOnExec = 4;
    auto from = static_cast<uint32_t>(call.arguments[0]);
    uint32_t own = static_cast<uint32_t>(sys::own_descriptors.next(static_cast<int>(from)));
    if (from > last || own > last || (call.arguments[2] & kCloseOnExec) != 0) {
        return hook::raw_system_call(SYS_close_range, call.arguments);
    }
    for (;;) {
        const uint32_t to = own > last ? last : own - 1;
        if (own > from) {
            const uint64_t piece[6] = {from, to, call.arguments[2], 0, 0, 0};
            const int64_t result = hook::raw_system_call(SYS_close_range, piece);
            if (result < 0 || own > last) return result;
        }
        if (own >= last) return 0;
        from = own + 1;
        own = static_cast<uint32_t>(sys::own_descriptors.next(static_cast<int>(from)));
    }
}

Verdict handle_close_range(SystemCall& call) {
    constexpr uint64_t kUnshare = 2;
    if ((call.arguments[2] & kUnshare) != 0) end_beginning();
    begin_to_change_files(static_cast<uint32_t>(call.arguments[0]),
                          static_cast<uint32_t>(call.arguments[1]));
    call.finish(close_between_own(call));
    end_changing_files();
    return Verdict::kDone;
}

// The kernel writes signal frames there, and cannot fault.
Verdict handle_signal_stack(SystemCall& call) {
    const auto* stack = reinterpret_cast<const stack_t*>(call.arguments[0]);
    if (!may_read(*the_space, call, call.arguments[0], sizeof *stack) ||
        (stack->ss_flags & SS_DISABLE) != 0) {
        return handle_arguments(call);
    }
    // The first frame begins at the end, which need not be one of a page.
    auto* const begin = static_cast<std::byte*>(stack->ss_sp);
    for (size_t left = stack->ss_size; left > 0; left -= left < 4096 ? left : 4096) {
        if (the_space->contains(reinterpret_cast<uintptr_t>(begin + left - 1))) {
            keep_signal_stack(begin + left - 1);
        }
    }
    if (the_space->contains(reinterpret_cast<uintptr_t>(begin))) {
        keep_signal_stack(begin);
    }
    return handle_arguments(call);
}

// Addresses that are set aside are mapped, as the kernel sees it.
Verdict handle_mincore(SystemCall& call) {
    const uint64_t(&a)[6] = call.arguments;
    if (the_space->overlaps(a[0], a[0] + a[1])) {
        SpaceCall asked{call, kKernelAnswers};
        hook::hanare_hook_with_vector_registers(answer, &asked);
        if (asked.result == -ENOMEM) {
            call.finish(-ENOMEM);
            return Verdict::kDone;
        }
    }
    return handle_arguments(call);
}

// It would bring all addresses that are set aside into memory.
Verdict refuse_to_lock(SystemCall& call) {
    call.finish(-EPERM);
    return Verdict::kDone;
}

// A range of it alone, as if there were no such call: what the pager does there would fail.
Verdict refuse_to_seal(SystemCall& call) {
    if (!the_space->overlaps(call.arguments[0], call.arguments[0] + call.arguments[1])) {
        return Verdict::kNative;
    }
    call.finish(-ENOSYS);
    return Verdict::kDone;
}

// Programs have another way to protect memory, by which far memory can be protected, too.
Verdict refuse_keys(SystemCall& call) {
    call.finish(-ENOSPC);
    return Verdict::kDone;
}

// As there are none, only that which says which key it shall be is valid.
Verdict handle_protection_by_key(SystemCall& call) {
    if (static_cast<int>(call.arguments[3]) <= 0) return handle_memory(call);
    call.finish(-EINVAL);
    return Verdict::kDone;
}

// What throws pages away can be asked for of the own process only, which has another way, too; the
// kernel would throw away what is the pager's.
Verdict handle_advice_for_process(SystemCall& call) {
    constexpr uint64_t kRangesMax = 1024;
    constexpr int kCollapse = 25;  // MADV_COLLAPSE
    const auto advice = static_cast<int>(call.arguments[3]);
    const bool keeps_pages = advice == MADV_COLD || advice == MADV_PAGEOUT ||
                             advice == MADV_WILLNEED || advice == kCollapse;
    const auto* ranges = reinterpret_cast<const uint64_t*>(call.arguments[1]);
    const uint64_t count = static_cast<uint32_t>(call.arguments[2]);
    for (uint64_t i = 0; !keeps_pages && i < count && i < kRangesMax; ++i, ranges += 2) {
        if (!may_read(*the_space, call, reinterpret_cast<uint64_t>(ranges), 2 * sizeof *ranges))
            break;
        if (!the_space->overlaps(ranges[0], ranges[0] + ranges[1])) continue;
        call.finish(-EINVAL);  // before Linux 6.13 it always is
        return Verdict::kDone;
    }
    return handle_arguments(call);
}

// Their transfers go on when the call is over.  Programs have another way.
Verdict refuse_transfers(SystemCall& call) {
    call.finish(-ENOSYS);
    return Verdict::kDone;
}

// From now on a device may write into memory, whatever numbers the file has.
Verdict handle_file_flags(SystemCall& call) {
    const auto file = static_cast<int>(call.arguments[0]);
    const bool is_change =
        static_cast<uint32_t>(call.arguments[1]) == F_SETFL && (call.arguments[2] & O_DIRECT) != 0;
    if (is_change && !sys::own_descriptors.contain(file)) end_beginning();
    return handle_arguments(call);
}

// A thread may have descriptors of its own from now on.
Verdict handle_unshare(SystemCall& call) {
    constexpr uint64_t kFiles = 0x400;  // CLONE_FILES
    if ((call.arguments[0] & kFiles) != 0) end_beginning();
    return Verdict::kNative;
}

Verdict handle_action(SystemCall& call) { return handle_signal_action(*the_space, call); }

constexpr uint32_t kSeal = 462;  // mseal

// By number, of calls for which more is done than handle_arguments() does; null: of all others.
using Handlers = std::array<hook::SystemCallHandler, kSystemCallsMax>;

constexpr Handlers make_handlers() {
    Handlers handlers = {};
    for (const int number : {SYS_brk, SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise,
                             SYS_mlock, SYS_mlock2, SYS_munlock, SYS_msync, SYS_mbind}) {
        handlers[static_cast<size_t>(number)] = handle_memory;
    }
    handlers[SYS_pkey_alloc] = refuse_keys;
    handlers[SYS_pkey_mprotect] = handle_protection_by_key;
    handlers[SYS_process_madvise] = handle_advice_for_process;
    handlers[kSeal] = refuse_to_seal;
    handlers[SYS_setsockopt] = handle_socket_option;
    handlers[SYS_mincore] = handle_mincore;
    handlers[SYS_fcntl] = handle_file_flags;
    handlers[SYS_unshare] = handle_unshare;
    handlers[SYS_mlockall] = refuse_to_lock;
    handlers[SYS_io_uring_setup] = handlers[SYS_io_setup] = refuse_transfers;
    handlers[SYS_rt_sigaction] = handle_action;
    handlers[SYS_rt_sigprocmask] = handle_mask;
    handlers[SYS_sigaltstack] = handle_signal_stack;
    for (const int number : {SYS_close, SYS_dup2, SYS_dup3})
        handlers[static_cast<size_t>(number)] = handle_close;
    handlers[SYS_close_range] = handle_close_range;
    for (const int number : {SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid,
                             SYS_setresgid, SYS_setgroups, SYS_capset}) {
        handlers[static_cast<size_t>(number)] = handle_identity;
    }
    handlers[SYS_fork] = handlers[SYS_clone] = handlers[SYS_clone3] = handle_fork;
    return handlers;
}

constexpr Handlers kHandlers = make_handlers();
static_assert(kSystemCallsMax == hook::kSystemCallNumbers);

// Apart from what is usual, which then needs no stack frame for all this.
[[gnu::noinline]] Verdict handle_any(SystemCall& call) {
    const Verdict verdict = buffer_calls.answer<BufferCalls::Cases::kAll>(*the_space, call);
    if (verdict != BufferCalls::kNotUsual) return verdict;
    if (sys::OwnThread::is_current()) return Verdict::kNative;
    if (the_space->contains(reinterpret_cast<uintptr_t>(call.stack))) {
        keep_own_stack(call);
    }
    const hook::SystemCallHandler handler = kHandlers[call.number];
    return handler != nullptr ? handler(call) : handle_arguments(call);
}

}  // namespace

void set_space(Space& space) noexcept {
    the_space = &space;
    set_far_memory(space);
}

Space* space() noexcept { return the_space; }

bool is_handled_apart(uint32_t number) noexcept { return kHandlers[number] != nullptr; }

void add_buffer_call(const SystemCallArguments& row) noexcept { buffer_calls.add(row); }

// The whole call again, as calls go that do not begin at once: nothing has come of it that is not
// the same then.  Other errors and the end of a file are that.
Verdict finish_transfer(SystemCall& call, int64_t result) {
    const bool is_fault = result == -EFAULT;
    if (is_fault) hook::let_transfers_begin(call.arguments[0] % hook::kFiles, false, false);
    if (is_fault || result > 0) return handle_any(call);
    call.finish(result);
    return Verdict::kDone;
}

Verdict handle_system_call(SystemCall& call) {
    const Verdict verdict = buffer_calls.answer<BufferCalls::Cases::kMost>(*the_space, call);
    return verdict == BufferCalls::kNotUsual ? handle_any(call) : verdict;
}

}  // namespace hanare::intercept
