// SPDX-License-Identifier: Apache-2.0
//
// The code that a rewritten site jumps to.  Every module has an area of stubs of its own, within
// reach of a jump, written once and then only executed.  One thread at a time.
//
//   offset  0  what was replaced in front of the system call, ending at 16
//          16  lea -128(%rsp), %rsp          the program's red zone
//          21  call entry                    which restores the stack pointer
//          27  jrcxz 31 or 38
//          29  jmp *%rcx                     to who comes back to 31 or 33, and may ask the handler
//          31  syscall                       with the program's stack pointer (clone)
//          33  what was replaced behind it, and a jump to where the program goes on
//          38  a jump to the system call     if that has stayed where it was
//          48  what is behind the system call: where the program goes on, or 33
//          56  where the program goes on: for unwinding
//
// A system call that nobody has to hear of is made where the program has it wherever that can be:
// behind the kernel, processors may have forgotten where jumps lead.
//
// Since all stubs are alike, one description of a frame serves them all: it computes from the
// program counter whether the stack pointer is shifted, and reads the return address at 56.  With
// it exceptions, forced unwinding of cancelled threads and backtraces pass through.  It is static
// for stubs in the pool (stub_pool.hpp).  Modules out of its reach get memory near them, whose
// frames are registered with libgcc: that costs every unwinding of the process a lock, which libgcc
// before 13 does not release in a child of fork.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "hook/rewrite/syscall_sites.hpp"

namespace hanare::hook {

inline constexpr size_t kStubBytes = 64;
inline constexpr size_t kStubBehindAt = 48;
inline constexpr size_t kStubReturnAt = 56;
inline constexpr size_t kStubCallEnd = 27;
inline constexpr size_t kStubRedZoneBytes = 128;
inline constexpr size_t kStubCallBytes = 17;  // from 16 to 33
inline constexpr size_t kStubSyscallAt = 4;   // from 27 to 31

// Writes a jump from `place` to `target`, at `writable`.  False where that is out of reach.
bool write_jump(uint8_t* writable, const uint8_t* place, const uint8_t* target) noexcept;

class StubArea {
public:
    StubArea() = default;
    // Room for `count` stubs that code at [begin, end) can jump to.
    static Result<StubArea> reserve(const uint8_t* begin, const uint8_t* end, size_t count);

    // In memory of the caller's, of bytes_for(count), that the code's jumps reach.  Nobody unwinds
    // through these stubs: for system calls that are no cancellation points.
    static StubArea inside(std::span<uint8_t> memory, size_t count) noexcept;
    static size_t bytes_for(size_t count) noexcept;

    // Writes the stub of a site at `place`, its code being read at `site` (these differ where the
    // module is read from its file).  Returns where to jump to; null if something is out of reach.
    // Before seal() only.
    const uint8_t* add(const SyscallSite& site, const uint8_t* place) noexcept;

    // Makes the stubs executable and known to the unwinder.
    Result<void> seal() noexcept;
    // The same for inside(), without libc.  False if the system refuses.
    bool seal_inside() const noexcept;
    // The opposite of seal(), and gives the memory back.  Nothing may run in the stubs.
    void release() noexcept;

private:
    void begin_inside(uint8_t* memory, size_t bytes, size_t count) noexcept;
    static Result<StubArea> map(const uint8_t* begin, const uint8_t* end, size_t count);
    uint8_t* stub(size_t index) const noexcept { return stubs_ + index * kStubBytes; }
    uint8_t* frame_description() const noexcept { return stub(capacity_); }
    void write_call(uint8_t* end) const noexcept;
    void describe_frames() const noexcept;

    uint8_t* stubs_ = nullptr;
    size_t capacity_ = 0;
    size_t count_ = 0;
    // Memory of its own: the entry's address, the stubs, the frames' description.  Null: in the
    // pool.
    uint8_t* memory_ = nullptr;
    size_t bytes_ = 0;
    bool registered_ = false;
};

}  // namespace hanare::hook
