// SPDX-License-Identifier: Apache-2.0
//
// Compiled for general registers only.
#include "intercept/signal_actions.hpp"

#include <csignal>

#include "hook/kept_actions.hpp"
#include "intercept/far_arguments.hpp"
#include "intercept/may_read.hpp"

namespace hanare::intercept {

namespace {

constexpr uint64_t kActionBytes = 32;  // the kernel's struct sigaction

struct ActionChange {
    hook::SystemCall& call;
    bool is_done = false;
};

void change_action(void* context) {
    auto& change = *static_cast<ActionChange*>(context);
    change.is_done = hook::change_kept_action(change.call);
}

}  // namespace

hook::Verdict handle_signal_action(const FarMemory& memory, hook::SystemCall& call) {
    const uint64_t number = call.arguments[0];
    if (number != SIGBUS && number != SIGSEGV) return handle_arguments(call);
    for (const uint64_t address : {call.arguments[1], call.arguments[2]}) {
        if (address != 0 && !may_read(memory, call, address, kActionBytes)) {
            return handle_arguments(call);
        }
    }
    ActionChange change{call};
    hook::hanare_hook_with_vector_registers(change_action, &change);
    return change.is_done ? hook::Verdict::kDone : handle_arguments(call);
}

}  // namespace hanare::intercept
