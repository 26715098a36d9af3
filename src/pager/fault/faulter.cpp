// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/faulter.hpp"

#include <ctime>

#include "pager/fault/pager.hpp"
#include "telemetry/raw_line.hpp"

namespace hanare::pager {

namespace {

constexpr int64_t kRepeatsWindow_s = 2;
// After so many faults on a mapped page of a shared region it is mapped again.
constexpr uint32_t kRepeatsOfShared = 3;

int64_t coarse_seconds() noexcept {
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec;
}

void say_why(telemetry::RawLine& line, const Region& region, hanare_status status) noexcept {
    const bool is_of_store = status == HANARE_STATUS_STORE_FULL || status == HANARE_STATUS_STORE_IO;
    if (const char* const why = is_of_store ? region.pager->store().trouble() : nullptr) {
        line.text(why);
        return;
    }
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
}

}  // namespace

bool Faulter::is_page_lost(const void* address, uint32_t repeats_max) noexcept {
    const int64_t now_s = coarse_seconds();
    if (address_ != address || now_s - since_s_ > kRepeatsWindow_s) {
        address_ = address;
        since_s_ = now_s;
        repeats_ = 0;
    }
    return ++repeats_ > repeats_max;
}

FaultOutcome serve_fault(Region& region, Faulter& faulter, const void* address, bool write,
                         uint32_t repeats_max) noexcept {
    bool was_mapped = false;
    const hanare_status status =
        region.pager->serve(region, address, write, faulter.history, &was_mapped);
    if (status != HANARE_STATUS_OK) return {status, false};
    if (was_mapped) {
        const bool is_shared = region.pager->engine().shares_regions();
        if (!faulter.is_page_lost(address, is_shared ? kRepeatsOfShared : repeats_max)) return {};
        if (!is_shared || !region.pager->map_again(region, address)) {
            return {HANARE_STATUS_OK, true};
        }
    }
    faulter.note_progress();
    return {};
}

void explain_failure(telemetry::RawLine& line, const Region& region, const void* address,
                     bool write, FaultOutcome outcome, const char* consequence) noexcept {
    if (outcome.page_lost) {
        line.text("hanare: the page at ").hex(address);
        line.text(
            " is gone although its block is mapped: was it unmapped or given to "
            "madvise(MADV_DONTNEED)? ");
    } else {
        line.text("hanare: cannot serve a ").text(write ? "write" : "read");
        line.text(" of far memory at ").hex(address);
        line.text(" (block ").decimal(region.index_of(address)).text("): ");
        say_why(line, region, outcome.status);
        line.text("; ");
    }
    line.text(consequence);
}

}  // namespace hanare::pager
