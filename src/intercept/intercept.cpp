// SPDX-License-Identifier: Apache-2.0
#include "intercept/intercept.hpp"

#include <algorithm>
#include <csignal>
#include <new>
#include <vector>

#include <sys/syscall.h>

#include "base/units.hpp"
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
    for (const uint32_t number :
         {SYS_brk,      SYS_mmap,      SYS_munmap,    SYS_mprotect,  SYS_pkey_mprotect,
          SYS_mremap,   SYS_madvise,   SYS_mlock,     SYS_mlock2,    SYS_munlock,
          SYS_msync,    SYS_mlockall,  SYS_fork,      SYS_close,     SYS_close_range,
          SYS_dup2,     SYS_dup3,      SYS_setuid,    SYS_setgid,    SYS_setreuid,
          SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setgroups, SYS_capset}) {
        if (arguments_of(number).pointers().empty()) numbers.push_back(number);
    }
    return numbers;
}

// Those that need nothing done unless the buffer or the stack is far memory.
std::vector<uint32_t> buffer_calls() {
    std::vector<uint32_t> numbers;
    for (const uint32_t number : calls_with_addresses()) {
        const SystemCallArguments& row = arguments_of(number);
        if (!BufferCalls::are(row) || number == SYS_io_setup) continue;  // which is refused
        add_buffer_call(row);
        numbers.push_back(number);
    }
    return numbers;
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
    HANARE_TRY(hook::prepare_system_calls(handle_system_call, wanted_calls(), buffer_calls()));
    made->adopt_static_memory();
    return {};
}

}  // namespace hanare::intercept
