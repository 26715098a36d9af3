// SPDX-License-Identifier: Apache-2.0
#include "pager/view.hpp"

#include <csignal>
#include <mutex>
#include <sys/mman.h>
#include <utility>

#include "base/units.hpp"
#include "pager/fault/handler.hpp"
#include "pager/fault/views.hpp"
#include "sys/shared_memory.hpp"
#include "sys/uffd.hpp"

namespace hanare::pager {

namespace {

struct View : ViewEntry {
    sys::Mapping mapping;
    sys::Userfault guard;
};

std::mutex views_lock;  // changes of the list

View* free_view() {
    std::atomic<ViewEntry*>& first = view_entries();
    for (ViewEntry* entry = first.load(); entry != nullptr; entry = entry->next) {
        if (entry->begin.load() == nullptr) return static_cast<View*>(entry);
    }
    auto* const view = new View;
    view->next = first.load();
    first.store(view, std::memory_order_release);
    return view;
}

}  // namespace

Result<ViewRange> open_view(int descriptor) {
    HANARE_TRY_ASSIGN(const size_t bytes, sys::shared_memory_bytes(descriptor));
    HANARE_TRY(claim_faults(SIGBUS));
    HANARE_TRY_ASSIGN(auto guard, sys::Userfault::open({.shared_memory = true}));
    HANARE_TRY_ASSIGN(auto mapping, sys::map_read_only(descriptor, bytes));
    // A child would not have the guard.
    HANARE_TRY(mapping.hide_from_children());
    if (const int error = guard.register_range(mapping.address(), bytes, sys::Userfault::kMissing);
        error != 0) {
        return fail_errno(HANARE_STATUS_SYSTEM, error, "userfaultfd cannot guard %s of a view",
                          format_size(bytes).c_str());
    }
    const std::lock_guard guard_of_list(views_lock);
    View& view = *free_view();
    view.mapping = std::move(mapping);
    view.guard = std::move(guard);
    view.bytes.store(bytes);
    view.begin.store(view.mapping.address(), std::memory_order_release);
    return ViewRange{view.mapping.address(), bytes};
}

Result<void> close_view(const void* address) {
    const std::lock_guard guard(views_lock);
    for (ViewEntry* entry = view_entries().load(); entry != nullptr; entry = entry->next) {
        if (address == nullptr || entry->begin.load() != address) continue;
        auto& view = static_cast<View&>(*entry);
        view.begin.store(nullptr);
        view.mapping = sys::Mapping();
        view.guard = sys::Userfault();
        return {};
    }
    return fail(HANARE_STATUS_NOT_FOUND, "%p is not the start of a view", address);
}

}  // namespace hanare::pager
