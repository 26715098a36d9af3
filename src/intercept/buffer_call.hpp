// SPDX-License-Identifier: Apache-2.0
//
// System calls whose only address is that of a buffer, in the second argument, such as read and
// write: the usual case of them, made in a few nanoseconds more than without Hanare.  Usual is that
// the call does not wait for anybody, and that the buffer is far memory and all there, or none of
// it is.  Everything else is FarCall's (far_call.hpp).
//
// Async-signal-safe; compiled for general registers only.  Not noexcept: a cancelled thread unwinds
// through it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "hook/rewrite/system_call.hpp"
#include "intercept/arguments.hpp"
#include "intercept/space.hpp"

namespace hanare::intercept {

class BufferCalls {
public:
    // Of calls that the table of arguments has, and that need nothing else done.
    void add(const SystemCallArguments& row) noexcept;
    // Whether a call is of the kind.
    static bool are(const SystemCallArguments& row) noexcept;

    // Nothing was done, since the call or its case is another one.  In a register, as all verdicts.
    static constexpr auto kNotUsual = static_cast<hook::Verdict>(3);
    hook::Verdict answer(Space& space, hook::SystemCall& call) const;

private:
    struct Buffer {
        uint16_t unit = 0;  // bytes; 0: the call is another one
        uint16_t extra = 0;
        bool is_counted = false;  // by the third argument
        bool is_count_int = false;
        bool is_written = false;  // by the kernel
        bool may_block = false;
    };

    std::array<Buffer, kSystemCallsMax> buffers_{};
};

}  // namespace hanare::intercept
