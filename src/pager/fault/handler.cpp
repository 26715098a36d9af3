// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/handler.hpp"

#include <cerrno>
#include <type_traits>
#include <ucontext.h>
#include <unistd.h>

#include "base/units.hpp"
#include "pager/fault/fault_service.hpp"
#include "pager/fault/faulter.hpp"
#include "pager/fault/pager.hpp"
#include "pager/fault/region_table.hpp"
#include "pager/fault/views.hpp"
#include "sys/clock.hpp"
#include "sys/thread_state.hpp"
#include "telemetry/raw_line.hpp"

namespace hanare::pager {

namespace {

// x86-64 page-fault error code: the access was a write.
constexpr greg_t kWriteAccess = 2;

// For pages that are gone (Faulter::is_page_lost).
constexpr uint32_t kRepeatsMax = 100'000;

struct ThreadState {
    uint32_t depth;
    Faulter faulter;
};
// Zeros at first.  What is constructed at first use has a guard, which is looked for in memory of
// libc's that may be absent itself (the DTV, below `hanare run`): a fault in this handler ends the
// program.
static_assert(std::is_trivially_default_constructible_v<ThreadState> &&
              std::is_trivially_destructible_v<ThreadState>);
[[gnu::tls_model("initial-exec")]] thread_local ThreadState thread_state;

std::atomic<bool> forked_child{false};

// Not sent by kill(), no hardware error, no protection key.
bool is_page_fault(const siginfo_t& info) {
    if (info.si_signo != SIGBUS) {
        return info.si_code == SEGV_MAPERR || info.si_code == SEGV_ACCERR;
    }
    return info.si_code == BUS_ADRERR || info.si_code == BUS_MCEERR_AR;
}

bool is_ours(const siginfo_t& info, const Engine& engine) {
    // From then on no engine matters any more.
    if (is_forked_child()) return true;
    // A page that the program has protected, for instance, is not what the engine waits for.
    if (info.si_signo != engine.fault_signal()) return false;
    // The hardware found an error, or a thread of the engine has given up (Engine::refuse).
    return info.si_code != BUS_MCEERR_AR || engine.events() != nullptr;
}

bool is_write(const void* context) {
    return (static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & kWriteAccess) !=
           0;
}

bool report_forked(const void* address) noexcept {
    telemetry::RawLine line;
    line.text("hanare: process ").decimal(static_cast<uint64_t>(getpid()));
    line.text(" touched far memory of its parent at ").hex(address);
    line.text(
        ": far memory is not inherited through fork, only exec or _exit there; "
        "SIGBUS follows");
    line.write_stderr();
    return false;
}

// A thread of the engine may have tried already and given up.
FaultOutcome serve_unless_refused(Region& region, const void* address, bool write) noexcept {
    FaultService* const service = region.pager->fault_service();
    FaultOutcome outcome;
    if (service != nullptr && service->take_refusal(sys::current_thread_id(), address, &outcome)) {
        return outcome;
    }
    return serve_fault(region, thread_state.faulter, address, write, kRepeatsMax);
}

// The kernel can give a signal to a thread only if the thread's stack is there, and cannot fault on
// it itself.  So memory in which a stack pointer was seen stays: its block, and the one below,
// since stacks grow and signal frames are large.
void keep_stack(const void* context) noexcept {
    constexpr uintptr_t kFrameBytesMax = 16 * kKiB;
    const auto* registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
    keep_stack_at(reinterpret_cast<const std::byte*>(registers[REG_RSP]));
    keep_stack_at(reinterpret_cast<const std::byte*>(registers[REG_RSP]) - kFrameBytesMax);
}

bool serve_or_report(Region& region, const void* address, bool write) noexcept {
    const FaultOutcome outcome = serve_unless_refused(region, address, write);
    if (outcome.served() || outcome.was_told) return outcome.served();
    telemetry::RawLine line;
    explain_failure(line, region, address, write, outcome, "SIGBUS follows");
    line.write_stderr();
    return false;
}

// It is in memory for good, and the engine protects nothing there.
bool is_protected_by_program(const Region& region, const void* address) noexcept {
    const uint32_t index = region.index_of(address);
    if ((region.access_of(index).load() & block_access::kGuarded) == 0) return false;
    const uint32_t word = region.block(index).load();
    return block_word::pinned(word) && block_word::state(word) == BlockState::kWritable;
}

}  // namespace

bool receive_fault(int, siginfo_t* info, void* context) noexcept {
    if (!is_page_fault(*info)) return false;
    const void* address = info->si_addr;
    Region* region = region_table().enter(address);
    if (region == nullptr) {
        if (info->si_signo == SIGBUS) report_view_fault(address);
        return false;
    }
    if (!is_ours(*info, region->pager->engine())) {
        region->leave();
        return false;
    }
    if (!region->may_access(address)) {
        // As the kernel would have said, had the program mapped it itself.
        region->leave();
        info->si_signo = SIGSEGV;
        info->si_code = SEGV_MAPERR;
        return false;
    }
    if (info->si_signo == SIGSEGV && region->is_adopted() &&
        is_protected_by_program(*region, address)) {
        region->leave();
        return false;
    }
    const int saved_errno = errno;
    bool served = false;
    {
        const FaultScope scope;
        const uint64_t began_ns = sys::now_ns();
        if (is_forked_child()) {
            served = report_forked(address);
        } else if (region->is_adopted()) {
            {
                const Gate::Pass pass(region->pager->gate());
                served = serve_or_report(*region, address, is_write(context));
            }
            keep_stack(context);
        } else {
            served = serve_or_report(*region, address, is_write(context));
        }
        count(region->counters.wait_ns, sys::now_ns() - began_ns);
    }
    region->leave();
    if (!served) {
        info->si_signo = SIGBUS;
        info->si_code = BUS_ADRERR;
    }
    errno = saved_errno;
    return served;
}

void keep_stack_at(const std::byte* stack_pointer) noexcept {
    Region* const region = region_table().enter(stack_pointer);
    if (region == nullptr) return;
    const uint32_t index = region->index_of(stack_pointer);
    if (region->is_adopted() && region->may_access(stack_pointer) &&
        (region->access_of(index).fetch_or(block_access::kStack) & block_access::kStack) == 0) {
        const FaultScope scope;
        const Gate::Pass pass(region->pager->gate());
        region->pager->pin_for_good(*region, index);
    }
    region->leave();
}

FaultScope::FaultScope() noexcept { ++thread_state.depth; }
FaultScope::~FaultScope() { --thread_state.depth; }

bool in_fault_handler() noexcept { return thread_state.depth != 0; }

void mark_forked_child() noexcept { forked_child.store(true, std::memory_order_release); }
bool is_forked_child() noexcept { return forked_child.load(std::memory_order_acquire); }

}  // namespace hanare::pager
