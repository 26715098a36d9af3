// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/views.hpp"

#include "telemetry/raw_line.hpp"

namespace hanare::pager {

std::atomic<ViewEntry*>& view_entries() noexcept {
    static constinit std::atomic<ViewEntry*> first{nullptr};
    return first;
}

bool report_view_fault(const void* address) noexcept {
    const auto* const byte = static_cast<const std::byte*>(address);
    const ViewEntry* entry = view_entries().load(std::memory_order_acquire);
    for (; entry != nullptr; entry = entry->next) {
        const std::byte* const begin = entry->begin.load(std::memory_order_acquire);
        if (begin == nullptr || byte < begin || byte >= begin + entry->bytes) continue;
        telemetry::RawLine line;
        line.text("hanare: the page at ").hex(address).text(" (offset ");
        line.decimal(static_cast<uint64_t>(byte - begin));
        line.text(
            " of a view) is not in the local memory of the process that exported it: to be read "
            "here it must be pinned there; SIGBUS follows");
        line.write_stderr();
        return true;
    }
    return false;
}

}  // namespace hanare::pager
