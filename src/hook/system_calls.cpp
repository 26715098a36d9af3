// SPDX-License-Identifier: Apache-2.0
#include "hook/system_calls.hpp"

#include <atomic>

#include "hook/rewrite/dispatch.hpp"
#include "hook/rewrite/entry.hpp"
#include "hook/rewrite/modules.hpp"
#include "sys/thread_count.hpp"

namespace hanare::hook {

Result<RewriteReport> intercept_system_calls(SystemCallHandler handler,
                                             std::span<const uint32_t> numbers,
                                             std::span<const uint32_t> of_buffers) {
    for (const uint32_t number : numbers) {
        if (number >= kSystemCallNumbers) {
            return fail(HANARE_STATUS_INVALID_ARGUMENT, "no system call has the number %u", number);
        }
    }
    if (!sys::ThreadCount().is_alone()) {
        return fail(HANARE_STATUS_NOT_SUPPORTED,
                    "system calls can be intercepted only while the process has one thread");
    }
    static std::atomic<bool> taken{false};
    if (taken.exchange(true)) {
        return fail(HANARE_STATUS_BUSY, "system calls are intercepted already");
    }
    set_handler(handler, numbers, of_buffers);
    HANARE_TRY(rewrite_loaded_modules());
    return rewrite_report();
}

RewriteReport rewrite_report() noexcept { return count_modules(); }

}  // namespace hanare::hook
