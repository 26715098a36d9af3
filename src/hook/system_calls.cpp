// SPDX-License-Identifier: Apache-2.0
#include "hook/system_calls.hpp"

#include <atomic>

#include "hook/rewrite/dispatch.hpp"
#include "hook/rewrite/entry.hpp"
#include "hook/rewrite/modules.hpp"
#include "hook/rewrite/traps.hpp"

namespace hanare::hook {

namespace {

std::atomic<bool> is_rewritten{false};
std::atomic<bool> has_failed{false};

}  // namespace

Result<void> prepare_system_calls(SystemCallHandler handler, std::span<const uint32_t> numbers,
                                  std::span<const AddressedCall> addressed,
                                  const Transfers& transfers) {
    for (const uint32_t number : numbers) {
        if (number >= kSystemCallNumbers) {
            return fail(HANARE_STATUS_INVALID_ARGUMENT, "no system call has the number %u", number);
        }
    }
    static std::atomic<bool> taken{false};
    if (taken.exchange(true)) {
        return fail(HANARE_STATUS_BUSY, "system calls are intercepted already");
    }
    set_handler(handler, numbers, addressed, transfers);
    return {};
}

Result<void> catch_system_calls() {
    if (has_failed.load()) {
        return fail(HANARE_STATUS_NOT_SUPPORTED, "the system does not let code be rewritten");
    }
    if (is_rewritten.exchange(true)) return {};
    end_traps();
    Result<void> result = rewrite_loaded_modules();
    if (!result && result.error().status == HANARE_STATUS_TIMEOUT) {
        is_rewritten.store(false);  // another time, perhaps
    } else if (!result) {
        has_failed.store(true);
    }
    return result;
}

Result<void> trap_system_calls() {
    if (!has_failed.load() && (is_rewritten.load() || begin_traps())) return {};
    return catch_system_calls();
}

RewriteReport rewrite_report() noexcept { return count_modules(); }

}  // namespace hanare::hook
