// SPDX-License-Identifier: Apache-2.0
//
// A system call as it arrives from a rewritten site, and what a handler may do with it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hanare::hook {

struct SystemCall {
    uint64_t number;  // of the x86-64 table; becomes the result
    uint64_t arguments[6];
    const std::byte* caller;  // where the program goes on
    std::byte* stack;         // the program's stack pointer
    // Of Verdict::kThenAfter.
    std::atomic<uintptr_t>* cleared;
    const std::atomic<uint32_t>* watched;
    void (*after)(SystemCall& call);
    void* context;  // the handler's

    void finish(int64_t result) noexcept { number = static_cast<uint64_t>(result); }
};

enum class Verdict : uint64_t {
    kDone = 0,    // finish() was called; the program goes on with the result
    kNative = 1,  // the system call is made by the site's stub, as the arguments now say
    // It is made as the arguments now say, then 0 is stored in `cleared`, and if `watched` is not 0
    // `after` is called, as the handler was.  Sooner than a handler that makes it and returns:
    // coming back from the kernel, processors may have forgotten where functions return to.
    kThenAfter = 2,
};

// A system call, and which of its arguments, a bit for each, are addresses.
struct AddressedCall {
    uint32_t number = 0;
    uint8_t arguments = 0;
};

// Called in the calling thread, on its stack, 128 bytes and a few words below its stack pointer;
// with signals as the program has them, so it may be interrupted, left by longjmp, or be unwound by
// a cancellation.  The program expects its vector registers unchanged: handlers are compiled with
// -mno-mmx -mno-sse, and call what is not through hanare_hook_with_vector_registers().
using SystemCallHandler = Verdict (*)(SystemCall& call);

// The same of a call that transfers bytes between the file of its first argument and the memory at
// its second one, as many as the third one says, and has not transferred them all: `result` is what
// the kernel has said, as from raw_system_call().
using TransferHandler = Verdict (*)(SystemCall& call, int64_t result);

// Calls that are made at once, and asked for afterwards, on files for which that does no harm
// (let_transfers_begin() in hook/system_calls.hpp).
struct Transfers {
    std::span<const uint32_t> reads_at_offsets;
    std::span<const uint32_t> others;
    TransferHandler fell_short = nullptr;
};

// Makes the system call here.  A negative errno value on failure, errno untouched.
inline int64_t raw_system_call(uint64_t number, const uint64_t (&arguments)[6]) noexcept {
    register uint64_t fourth asm("r10") = arguments[3];
    register uint64_t fifth asm("r8") = arguments[4];
    register uint64_t sixth asm("r9") = arguments[5];
    int64_t result;
    asm volatile("syscall"
                 : "=a"(result)
                 : "a"(number), "D"(arguments[0]), "S"(arguments[1]), "d"(arguments[2]),
                   "r"(fourth), "r"(fifth), "r"(sixth)
                 : "rcx", "r11", "memory");
    return result;
}

// Calls function(context) with the program's vector registers saved, and restores them.  For
// handlers that need more than general registers; a few hundred cycles and some KiB of stack.
extern "C" void hanare_hook_with_vector_registers(void (*function)(void* context), void* context);

}  // namespace hanare::hook
