// SPDX-License-Identifier: Apache-2.0
#include "pager/fork.hpp"

#include <array>
#include <atomic>
#include <pthread.h>

#include "pager/fault/handler.hpp"
#include "pager/fault/pager.hpp"
#include "pager/fault/region_table.hpp"
#include "sys/memory.hpp"
#include "sys/thread_count.hpp"

namespace hanare::pager {

namespace {

std::atomic<uint32_t> open_pools{0};
// Of pools without regions, too: a memory server would take the child for one that keeps a lease.
// What finds no place is found by its regions.
std::array<std::atomic<store::Store*>, 256> stores{};

void enter_child() {
    sys::OwnThread::forget_all();
    if (open_pools.load() == 0) return;
    mark_forked_child();
    for (const auto& store : stores) {
        if (store.load() != nullptr) store.load()->abandon_in_child();
    }
    // The snapshot of the moment of the fork: immutable, so no lock is needed.
    region_table().for_each([](Region& region) {
        sys::poison(region.begin(), region.range.bytes());
        region.pager->engine().abandon_in_child();
        region.pager->store().abandon_in_child();
    });
}

}  // namespace

void note_pool_opened(store::Store& store) noexcept {
    open_pools.fetch_add(1);
    for (auto& place : stores) {
        store::Store* none = nullptr;
        if (place.compare_exchange_strong(none, &store)) return;
    }
}

void note_pool_closed(store::Store& store) noexcept {
    for (auto& place : stores) {
        store::Store* same = &store;
        if (place.compare_exchange_strong(same, nullptr)) break;
    }
    open_pools.fetch_sub(1);
}

Result<void> watch_forks() {
    static const int error = pthread_atfork(nullptr, nullptr, enter_child);
    if (error == 0) return {};
    return fail_errno(HANARE_STATUS_NO_MEMORY, error, "cannot register with pthread_atfork");
}

}  // namespace hanare::pager
