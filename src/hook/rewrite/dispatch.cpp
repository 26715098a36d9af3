// SPDX-License-Identifier: Apache-2.0
//
// Who gets a caught system call.  Compiled for general registers only, like all that a stub reaches
// directly.
#include "hook/rewrite/dispatch.hpp"

#include <sys/syscall.h>

#include "hook/rewrite/entry.hpp"
#include "hook/rewrite/modules.hpp"

namespace hanare::hook {

namespace {

std::atomic<SystemCallHandler> handler{nullptr};
bool wanted_by_handler[kSystemCallNumbers] = {};

// Of mmap: PROT_EXEC, MAP_ANONYMOUS.
constexpr uint64_t kExecutable = 0x4;
constexpr uint64_t kAnonymous = 0x20;

bool is_error(uint64_t result) noexcept { return result > -4096UL; }

bool maps_code_of_a_file(const SystemCall& call) noexcept {
    return (call.arguments[2] & kExecutable) != 0 && (call.arguments[3] & kAnonymous) == 0;
}

void rewrite_what_was_mapped(void* context) {
    const auto& call = *static_cast<const SystemCall*>(context);
    rewrite_mapped_code(reinterpret_cast<uint8_t*>(call.number), call.arguments[1],
                        static_cast<int>(call.arguments[4]), call.arguments[5]);
}

void forget_what_was_unmapped(void* context) {
    const auto& call = *static_cast<const SystemCall*>(context);
    forget_code(reinterpret_cast<const uint8_t*>(call.arguments[0]), call.arguments[1]);
}

Verdict ask_handler(SystemCall& call) {
    if (!wanted_by_handler[call.number]) return Verdict::kNative;
    return handler.load(std::memory_order_acquire)(call);
}

// As the program made it, or as the handler answers it.
void make(SystemCall& call) {
    const uint64_t number = call.number;
    if (ask_handler(call) == Verdict::kNative) call.finish(raw_system_call(number, call.arguments));
}

}  // namespace

void set_handler(SystemCallHandler function, std::span<const uint32_t> numbers) noexcept {
    for (const uint32_t number : numbers) {
        wanted_by_handler[number] = true;
        hanare_hook_wanted[number] = 1;
    }
    handler.store(function, std::memory_order_release);
    hanare_hook_wanted[SYS_mmap] = 1;
    hanare_hook_wanted[SYS_munmap] = 1;
}

extern "C" Verdict hanare_hook_dispatch(SystemCall* call) {
    if (call->number == SYS_mmap && maps_code_of_a_file(*call)) {
        make(*call);
        if (!is_error(call->number)) {
            hanare_hook_with_vector_registers(rewrite_what_was_mapped, call);
        }
        return Verdict::kDone;
    }
    if (call->number == SYS_munmap &&
        has_rewritten_code(reinterpret_cast<const uint8_t*>(call->arguments[0]),
                           call->arguments[1])) {
        make(*call);
        if (!is_error(call->number)) {
            hanare_hook_with_vector_registers(forget_what_was_unmapped, call);
        }
        return Verdict::kDone;
    }
    return ask_handler(*call);
}

}  // namespace hanare::hook
