// SPDX-License-Identifier: Apache-2.0
//
// Catches the system calls of a running program.  In the end every `syscall` instruction of the
// modules that are loaded (libc, ld.so and whatever else has some) is replaced, in memory, by a
// jump to a stub, and so are those of modules that are loaded later, before they run.  Nothing on
// disk changes.  A caught system call costs a table look-up unless its number was asked for.
//
// Not caught: modules that were linked statically with Hanare's code, code made at run
// time, rt_sigreturn, and the few sites that `RewriteReport` counts as left.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "hook/rewrite/entry.hpp"
#include "hook/rewrite/system_call.hpp"

namespace hanare::hook {

struct RewriteReport {
    uint32_t modules = 0;    // that have system calls
    uint32_t rewritten = 0;  // sites
    uint32_t left = 0;       // sites whose surroundings do not allow it
};

// `handler` is called instead of the system calls with these numbers (of the x86-64 table, below
// 512), in every thread, once they are caught.  Once per process.
//
// `addressed`: those of them that concern `handler` only for the memory at these arguments, 4 GiB
// at most of each, or for the stack.  It gets them only when such an address, or the stack pointer,
// is near memory that it cares for, and perhaps when none is.  `transfers`: those of them that
// transfer bytes, with one such address.
Result<void> prepare_system_calls(SystemCallHandler handler, std::span<const uint32_t> numbers,
                                  std::span<const AddressedCall> addressed = {},
                                  const Transfers& transfers = {});

// From now on they are caught; afterwards it does nothing.  Other threads than the calling one,
// which may be in a handler of such a call, are stopped for a moment.  NOT_SUPPORTED, then
// and when it is asked again, where the system does not let any code be written or threads be
// stopped; TIMEOUT where one does not stop: then it may be asked again.
Result<void> catch_system_calls();

// The same, but code is rewritten later if it takes less to be told of each system call by the
// kernel (rewrite/traps.hpp): at the latest before the program makes a thread or a child, handles a
// signal or loads a library, or at catch_system_calls().
Result<void> trap_system_calls();

// The handler cares, from now on and for ever, for memory that ends at `end`, and into which
// nothing reaches that begins in front of `front`.  Any thread; async-signal-safe.
void note_handlers_memory(uintptr_t front, uintptr_t end) noexcept;
// The front where nobody knows it.
constexpr uintptr_t far_in_front_of(uintptr_t begin) noexcept {
    const uintptr_t place = begin / kPlaceBytes;
    return (place > 0 ? place - 1 : 0) * kPlaceBytes;
}
// Whether what begins at the address may reach into such memory.
[[gnu::always_inline]] inline bool is_near_handlers_memory(uintptr_t address) noexcept {
    const auto place = static_cast<Place>(hanare_hook_places[address / kPlaceBytes % kPlaces]);
    return place != Place::kFar &&
           (place == Place::kNear ||
            hanare_hook_places[kPlaces + address / kPartBytes % kParts] != 0);
}

// Whether reads at offsets, or all transfers, from and to this file, below kFiles, may begin
// although the memory may not be there, because the same call can be made again.  Any thread;
// async-signal-safe.
inline void let_transfers_begin(uint64_t file, bool reads_at_offsets, bool all) noexcept {
    const auto set = [](uint8_t& word, bool may) {
        std::atomic_ref(word).store(may ? 1 : 0, std::memory_order_relaxed);
    };
    set(hanare_hook_files[file], reads_at_offsets);
    set(hanare_hook_files[kFiles + file], all);
}
// Some of what is not caught may close files or give their numbers to others.  Any thread;
// async-signal-safe.
inline bool do_files_change_unseen() noexcept {
    return hanare_hook_files_change_unseen.load(std::memory_order_relaxed);
}

// With what has been loaded since.  Any thread.
RewriteReport rewrite_report() noexcept;

// Some of what is not caught may make threads.  Any thread; async-signal-safe.
[[gnu::always_inline]] inline bool threads_begin_unseen() noexcept {
    return hanare_hook_threads_begin_unseen.load(std::memory_order_relaxed);
}

}  // namespace hanare::hook
