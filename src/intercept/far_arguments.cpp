// SPDX-License-Identifier: Apache-2.0
//
// Compiled for general registers only.
#include "intercept/far_arguments.hpp"

#include <sys/socket.h>

#include <cerrno>

#include "intercept/far_call.hpp"
#include "sys/raw_thread.hpp"

namespace hanare::intercept {

namespace {

constexpr size_t kPieceBytesMin = size_t{64} << 10;
constexpr uint64_t kPieceShare = 16;  // of local memory

constinit FarMemory* the_memory = nullptr;

}  // namespace

void set_far_memory(FarMemory& memory) noexcept {
    sys::note_memory_owner();
    the_memory = &memory;
}

void divide_local_memory(uint64_t local_bytes) noexcept {
    uint64_t share = local_bytes / kPieceShare;
    if (share < kPieceBytesMin) share = kPieceBytesMin;
    if (share < piece_bytes.load(std::memory_order_relaxed)) {
        piece_bytes.store(share, std::memory_order_relaxed);
    }
}

hook::Verdict handle_arguments(hook::SystemCall& call) {
    const SystemCallArguments& row = arguments_of(call.number);
    if (!FarCall::is_wanted(*the_memory, call, row)) return hook::Verdict::kNative;
    the_memory->count_protected_call();
    FarCall far_call(*the_memory, call, piece_bytes.load(std::memory_order_relaxed));
    call.finish(far_call.make(row));
    return hook::Verdict::kDone;
}

hook::Verdict handle_socket_option(hook::SystemCall& call) {
    constexpr int kZeroCopy = 60;  // SO_ZEROCOPY
    const auto level = static_cast<int>(call.arguments[1]);
    if (level != SOL_SOCKET || static_cast<int>(call.arguments[2]) != kZeroCopy) {
        return handle_arguments(call);
    }
    call.finish(-EOPNOTSUPP);
    return hook::Verdict::kDone;
}

}  // namespace hanare::intercept
