// SPDX-License-Identifier: Apache-2.0
//
// Views: regions of other processes that this one has mapped for reading (pager/view.hpp).  An
// access to what is not in the other's local memory is a SIGBUS, which is explained here and served
// by nobody.  Handlers look views up without a lock: entries are used again, never freed.
#pragma once

#include <atomic>
#include <cstddef>

namespace hanare::pager {

struct ViewEntry {
    std::atomic<const std::byte*> begin{nullptr};  // nullptr: free
    std::atomic<size_t> bytes{0};
    ViewEntry* next = nullptr;
};

// The process's views.
std::atomic<ViewEntry*>& view_entries() noexcept;

// Whether the address lies in a view; then one line says so.  Async-signal-safe.
bool report_view_fault(const void* address) noexcept;

}  // namespace hanare::pager
