// SPDX-License-Identifier: Apache-2.0
//
// What the head of a file says about how the kernel and the dynamic loader will take it.  Files are
// not trusted: whatever is cut off or contradicts itself is kNone.  Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace hanare::sys {

struct ElfFile {
    enum class Kind : uint8_t {
        kNone,          // not an ELF program
        kDynamic,       // x86-64, begins in the dynamic loader `loader`
        kStatic,        // x86-64 without one
        k32Bit,         // of this machine, but with addresses of 32 bits (i386 and x32)
        kOtherMachine,  // its number is `machine`
    };

    Kind kind = Kind::kNone;
    uint16_t machine = 0;  // EM_*
    std::string loader;    // PT_INTERP
};

// Reads from the descriptor's file without moving its position.
ElfFile inspect_elf(int file);

// "AArch64", or the number for rarer ones.
std::string machine_name(uint16_t machine);

}  // namespace hanare::sys
