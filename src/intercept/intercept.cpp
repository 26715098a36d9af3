// SPDX-License-Identifier: Apache-2.0
#include "intercept/intercept.hpp"

#include <sys/syscall.h>

#include <csignal>
#include <new>
#include <vector>

#include "intercept/arguments.hpp"
#include "intercept/buffer_call.hpp"
#include "intercept/far_arguments.hpp"
#include "intercept/handler.hpp"
#include "pager/fault/handler.hpp"
#include "sys/own_descriptors.hpp"
#include "sys/thread_count.hpp"

namespace hanare::intercept {

namespace {

// Those with addresses, and those that make or change memory.
std::vector<uint32_t> wanted_calls() {
    std::vector<uint32_t> numbers = calls_with_addresses();
    for (uint32_t number = 0; number < kSystemCallsMax; ++number) {
        if (is_handled_apart(number) && arguments_of(number).pointers().empty()) {
            numbers.push_back(number);
        }
    }
    return numbers;
}

// Those that need nothing done unless memory at their arguments, or the stack, is far.
std::vector<hook::AddressedCall> addressed_calls() {
    std::vector<hook::AddressedCall> calls;
    for (const uint32_t number : calls_with_addresses()) {
        if (is_handled_apart(number)) continue;
        const SystemCallArguments& row = arguments_of(number);
        if (BufferCalls::are(row)) add_buffer_call(row);
        if (const uint8_t arguments = direct_addresses(row); arguments != 0) {
            calls.push_back({number, arguments});
        }
    }
    return calls;
}

}  // namespace

Result<void> begin(const SpaceOptions& options) {
    if (!sys::ThreadCount().is_alone()) {
        return fail(HANARE_STATUS_NOT_SUPPORTED,
                    "the program has had more than one thread before hanare run could begin");
    }
    // It has to outlive every destructor of the program.
    sys::own_descriptors.begin();
    auto* const made = new Space(options);
    set_space(*made);
    divide_local_memory(options.pool.local_bytes);
    // Accesses to addresses that are set aside and not mapped are SIGSEGV to the program.
    HANARE_TRY(pager::claim_faults(SIGSEGV));
    constexpr uint32_t kReadsAtOffsets[] = {SYS_pread64};
    constexpr uint32_t kOthers[] = {SYS_read, SYS_write, SYS_pwrite64};
    HANARE_TRY(hook::prepare_system_calls(handle_system_call, wanted_calls(), addressed_calls(),
                                          {kReadsAtOffsets, kOthers, finish_transfer}));
    made->adopt_static_memory();
    return {};
}

}  // namespace hanare::intercept
