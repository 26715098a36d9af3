// SPDX-License-Identifier: Apache-2.0
//
// Decodes x86-64 machine code as far as moving an instruction needs it: how long it is, where it
// may jump to, what else in it depends on its own address.  Operands are not decoded.  Everything
// that compilers emit for user programs is known (legacy maps, VEX, EVEX); what is not valid in
// 64-bit mode, and XOP, is refused.  Source of the encodings: Intel SDM volume 2, chapters 2 and
// appendix A.
//
// Pure functions; any thread; async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hanare::hook {

inline constexpr size_t kInstructionBytesMax = 15;

struct Instruction {
    enum class Kind : uint8_t {
        kPlain,       // goes on behind itself, does the same at another address
        kJump,        // also jcc, loop, jrcxz, xbegin: to `target`, perhaps
        kCall,        // to `target`, and comes back
        kIndirect,    // jump or call through a register or memory
        kReturn,      // ret, iret, hlt, ud: does not go on
        kSystemCall,  // syscall
        kOther,       // int, sysenter, loop-free but not to be moved
    };
    Kind kind = Kind::kPlain;
    uint8_t bytes = 0;  // 0: not an instruction, or cut off by the end of the code
    // Where the 32-bit displacement from the end of the instruction lies; 0: there is none.
    uint8_t relative_at = 0;
    bool uses_stack_pointer = false;  // as a register, pushed or popped; not as base of an address
    bool goes_on = true;              // to what follows, at least sometimes
    // Of kJump and kCall: the offset of the target from the instruction's first byte.
    int64_t target = 0;
};

Instruction decode_instruction(std::span<const uint8_t> code) noexcept;

}  // namespace hanare::hook
