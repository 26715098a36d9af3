// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/handler.hpp"

#include <cerrno>
#include <ctime>
#include <ucontext.h>
#include <unistd.h>

#include "pager/fault/pager.hpp"
#include "pager/fault/region_table.hpp"
#include "telemetry/raw_line.hpp"

namespace hanare::pager {

namespace {

// x86-64 page-fault error code: the access was a write.
constexpr greg_t kWriteAccess = 2;

// A page of a mapped block that faults so often in so short a time is gone although the pager did
// not take it.  Other threads cannot be faster than that so often: each time costs two transfers.
constexpr uint32_t kRepeatsMax = 100'000;
constexpr int64_t kRepeatsWindow_s = 2;

struct ThreadState {
    const void* address;
    int64_t since_s;
    uint32_t repeats;
    uint32_t depth;
    AccessHistory history;
};
[[gnu::tls_model("initial-exec")]] thread_local ThreadState thread_state;

std::atomic<bool> forked_child{false};

// Not sent by kill(), no hardware error, no protection key.
bool is_page_fault(const siginfo_t& info) {
    if (info.si_signo == SIGBUS) return info.si_code == BUS_ADRERR;
    return info.si_code == SEGV_MAPERR || info.si_code == SEGV_ACCERR;
}

bool is_write(const void* context) {
    return (static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & kWriteAccess) !=
           0;
}

int64_t coarse_seconds() noexcept {
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec;
}

// A mapped block faulted: normally another thread was faster, once or twice.
bool is_page_lost(const void* address) noexcept {
    const int64_t now_s = coarse_seconds();
    if (thread_state.address != address || now_s - thread_state.since_s > kRepeatsWindow_s) {
        thread_state.address = address;
        thread_state.since_s = now_s;
        thread_state.repeats = 0;
    }
    return ++thread_state.repeats > kRepeatsMax;
}

void report(const Region& region, const void* address, bool write, hanare_status status) noexcept {
    telemetry::RawLine line;
    line.text("hanare: cannot serve a ").text(write ? "write" : "read").text(" of far memory at ");
    line.hex(address).text(" (block ").decimal(region.index_of(address)).text("): ");
    switch (status) {
        case HANARE_STATUS_CORRUPT:
            line.text("the block came back from the store different from what was written");
            break;
        case HANARE_STATUS_STORE_FULL: line.text("the store has no room left"); break;
        case HANARE_STATUS_STORE_IO:
            line.text("the store failed, errno ");
            line.signed_decimal(region.pager->store().last_errno());
            break;
        case HANARE_STATUS_NO_MEMORY: line.text("the operating system refused memory"); break;
        case HANARE_STATUS_BUSY:
            line.text("no frame can be freed, their pages are held by the kernel");
            break;
        case HANARE_STATUS_NOT_FOUND:
            line.text("the region was freed while this thread used it");
            break;
        default:
            line.text("the fault engine failed, errno ");
            line.signed_decimal(region.pager->engine_errno.load(std::memory_order_relaxed));
    }
    line.text("; SIGBUS follows").write_stderr();
}

void report_lost_page(const void* address) noexcept {
    telemetry::RawLine line;
    line.text("hanare: the page at ").hex(address);
    line.text(
        " is gone although its block is mapped: was it unmapped or given to "
        "madvise(MADV_DONTNEED)? SIGBUS follows");
    line.write_stderr();
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

bool serve_fault(Region& region, const void* address, bool write) noexcept {
    bool was_mapped = false;
    const hanare_status status =
        region.pager->serve(region, address, write, thread_state.history, &was_mapped);
    if (status != HANARE_STATUS_OK) {
        report(region, address, write, status);
        return false;
    }
    if (!was_mapped) {
        thread_state.address = nullptr;
        return true;
    }
    if (!is_page_lost(address)) return true;
    report_lost_page(address);
    return false;
}

}  // namespace

bool receive_fault(int signal_number, siginfo_t* info, void* context) noexcept {
    if (!is_page_fault(*info)) return false;
    const void* address = info->si_addr;
    Region* region = region_table().enter(address);
    if (region == nullptr) return false;
    // A page that the program has protected, for instance, is not what the engine waits for.
    if (signal_number != region->pager->engine().fault_signal() && !is_forked_child()) {
        region->leave();
        return false;
    }
    const int saved_errno = errno;
    ++thread_state.depth;
    const bool served = is_forked_child() ? report_forked(address)
                                          : serve_fault(*region, address, is_write(context));
    --thread_state.depth;
    region->leave();
    if (!served) {
        info->si_signo = SIGBUS;
        info->si_code = BUS_ADRERR;
    }
    errno = saved_errno;
    return served;
}

bool in_fault_handler() noexcept { return thread_state.depth != 0; }

void mark_forked_child() noexcept { forked_child.store(true, std::memory_order_release); }
bool is_forked_child() noexcept { return forked_child.load(std::memory_order_acquire); }

}  // namespace hanare::pager
