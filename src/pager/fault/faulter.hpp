// SPDX-License-Identifier: Apache-2.0
//
// A fault on behalf of the thread that raised it: what is remembered of the thread from one fault
// to the next, what became of the fault, and the line that says why it could not be served.
#pragma once

#include <cstdint>

#include "hanare/status.h"
#include "pager/fault/access_history.hpp"

namespace hanare::telemetry {
class RawLine;
}

namespace hanare::pager {

// Of one thread; zero-filled memory is one that has not faulted.
class Faulter {
public:
    AccessHistory history;

    // Records a fault on a page of a mapped block, which normally another thread was faster with.
    // True when there were more than `repeats_max` in a row in two seconds: the page is gone
    // although the pager did not take it.  Others cannot be that fast: each time costs two
    // transfers.
    bool is_page_lost(const void* address, uint32_t repeats_max) noexcept;
    void note_progress() noexcept { address_ = nullptr; }

private:
    const void* address_;
    int64_t since_s_;
    uint32_t repeats_;
};

struct FaultOutcome {
    hanare_status status = HANARE_STATUS_OK;
    bool page_lost = false;
    bool was_told = false;  // the line was written already

    bool served() const noexcept { return status == HANARE_STATUS_OK && !page_lost; }
};

FaultOutcome serve_fault(Region& region, Faulter& faulter, const void* address, bool write,
                         uint32_t repeats_max) noexcept;

// `consequence`: what happens now ("SIGBUS follows").
void explain_failure(telemetry::RawLine& line, const Region& region, const void* address,
                     bool write, FaultOutcome outcome, const char* consequence) noexcept;

}  // namespace hanare::pager
