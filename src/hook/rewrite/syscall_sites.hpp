// SPDX-License-Identifier: Apache-2.0
//
// Finds the `syscall` instructions of a module and, for each, the instructions that a jump of five
// bytes can take the place of.  A site is taken only where decoding the function from its beginning
// arrives at it, where no jump of the function leads into the replaced bytes (to their first is
// allowed), and where the replaced instructions do the same elsewhere.  Neither allocates nor
// locks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "hook/rewrite/code_image.hpp"

namespace hanare::hook {

inline constexpr size_t kJumpBytes = 5;

struct SyscallSite {
    const uint8_t* syscall = nullptr;
    uint8_t before_bytes =
        0;                    // of whole instructions that are replaced in front of the system call
    uint8_t after_bytes = 0;  // and behind it
    // The number where the instruction in front loads a constant; -1 otherwise.
    int32_t number = -1;

    static constexpr size_t kSyscallBytes = 2;
    static constexpr size_t kBeforeBytesMax = 16;
    static constexpr size_t kAfterBytesMax = 10;

    bool usable() const noexcept { return before_bytes + after_bytes != 0; }
    // Whether the jump takes the place of what is in front only.
    bool stays() const noexcept { return before_bytes >= kJumpBytes; }
    const uint8_t* begin() const noexcept { return syscall - before_bytes; }
    // Where the program goes on.
    const uint8_t* end() const noexcept { return syscall + kSyscallBytes + after_bytes; }
};

// Where a segment of code has the two bytes of the instruction, be they one or not.  Code is read
// once, unless there are more places than are remembered.
class SyscallBytes {
public:
    explicit SyscallBytes(Code code) noexcept;

    Code code() const noexcept { return code_; }
    size_t count() const noexcept { return count_; }
    // Null behind the last.  `before`: the one before it, null for the first.
    const uint8_t* place(size_t index, const uint8_t* before) const noexcept;

private:
    static constexpr size_t kRememberedMax = 1024;  // libc has 550
    Code code_;
    size_t count_ = 0;
    std::array<uint32_t, kRememberedMax> remembered_;  // distances from the beginning
};

// Calls `visit` for each `syscall` instruction among these, also for those that cannot be replaced
// (`usable()` is false then).
void find_syscall_sites(const CodeImage& image, const SyscallBytes& places,
                        void (*visit)(const SyscallSite& site, void* context), void* context);

}  // namespace hanare::hook
