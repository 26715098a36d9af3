// SPDX-License-Identifier: Apache-2.0
//
// Room for stubs inside Hanare's own code: the unwinder finds their description where it looks for
// that of any function, without a lock or an allocation.  Used for all modules that can jump there,
// which libraries can.  Callers take turns (modules.cpp).
#pragma once

#include <cstddef>
#include <cstdint>

namespace hanare::hook {

// DWARF expressions for the frames of stubs (stub.hpp), as bytes for C++ and for the assembler.
// rsp + ((21 <= offset && offset < 27) << 7), the offset being rip & 63:
//   breg7 0, breg16 0, const1u 63, and, dup, const1u 21, ge, swap, const1u 27, lt, and, lit7, shl,
//   plus
#define HANARE_STUB_FRAME_BYTES 19
#define HANARE_STUB_FRAME                                                                     \
    0x77, 0x00, 0x80, 0x00, 0x08, 0x3f, 0x1a, 0x12, 0x08, 0x15, 0x2a, 0x16, 0x08, 0x1b, 0x2d, \
        0x1a, 0x37, 0x24, 0x22
// What lies at offset 56 of the stub:
//   breg16 0, const1u 63, not, and, plus_uconst 56, deref
#define HANARE_STUB_RETURN_BYTES 9
#define HANARE_STUB_RETURN 0x80, 0x00, 0x08, 0x3f, 0x20, 0x1a, 0x23, 0x38, 0x06

class StubPool {
public:
    // `count` stubs beside each other, writable, that code at [begin, end) can jump to; null if
    // there are none.
    static uint8_t* take(const uint8_t* begin, const uint8_t* end, size_t count) noexcept;
    // No longer writable.  False if the system refuses.
    static bool seal(uint8_t* stubs, size_t count) noexcept;
    static void give_back(uint8_t* stubs, size_t count) noexcept;
};

}  // namespace hanare::hook
