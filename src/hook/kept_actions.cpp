// SPDX-License-Identifier: Apache-2.0
#include "hook/kept_actions.hpp"

#include "hook/claims.hpp"
#include "hook/kernel_signals.hpp"

namespace hanare::hook {

namespace {

constexpr unsigned long kRestorer = 0x04000000;  // SA_RESTORER, libc's business

}  // namespace

bool change_kept_action(SystemCall& call) noexcept {
    const auto* const action = reinterpret_cast<const KernelSigaction*>(call.arguments[1]);
    auto* const old = reinterpret_cast<KernelSigaction*>(call.arguments[2]);
    if (call.arguments[0] > 64 || call.arguments[3] != sizeof action->mask) return false;
    DispositionCell* const kept = find_kept_disposition(static_cast<int>(call.arguments[0]));
    if (kept == nullptr || (action != nullptr && is_own_handler(action->handler))) return false;
    const Disposition previous =
        action == nullptr
            ? kept->read()
            : exchange_kept(*kept, {.handler = reinterpret_cast<uintptr_t>(action->handler),
                                    .mask = action->mask,
                                    .flags = static_cast<uint32_t>(action->flags & ~kRestorer)});
    if (old != nullptr) {
        *old = {.handler = reinterpret_cast<void*>(previous.handler),
                .flags = previous.flags,
                .restorer = nullptr,
                .mask = previous.mask};
    }
    call.finish(0);
    return true;
}

}  // namespace hanare::hook
