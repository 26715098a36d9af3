// SPDX-License-Identifier: Apache-2.0
//
// System calls with arguments in far memory (far_call.hpp), of the process's one FarMemory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hook/rewrite/system_call.hpp"
#include "intercept/arguments.hpp"
#include "intercept/far_memory.hpp"

namespace hanare::intercept {

// Before the first system call is caught.
void set_far_memory(FarMemory& memory) noexcept;
// Of far memory, what one call holds: a part of `local_bytes`, of the smallest pool there was.
void divide_local_memory(uint64_t local_bytes) noexcept;
inline constinit std::atomic<size_t> piece_bytes{size_t{4} << 20};

// Of a call that does nothing but read and write at its arguments.
hook::Verdict handle_arguments(hook::SystemCall& call);
// setsockopt: SO_ZEROCOPY is refused, as for sockets that do not have it.  What is sent so would be
// read by the kernel, or by a card, after the call.
hook::Verdict handle_socket_option(hook::SystemCall& call);

// Numbers of the calls that have addresses among their arguments.
std::vector<uint32_t> calls_with_addresses();
// Which arguments are addresses, a bit for each; none where what lies there may hold more of them.
uint8_t direct_addresses(const SystemCallArguments& row) noexcept;

}  // namespace hanare::intercept
