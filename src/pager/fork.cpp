// SPDX-License-Identifier: Apache-2.0
#include "pager/fork.hpp"

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

void enter_child() {
    sys::OwnThread::forget_all();
    if (open_pools.load() == 0) return;
    mark_forked_child();
    // The snapshot of the moment of the fork: immutable, so no lock is needed.
    region_table().for_each([](Region& region) {
        sys::poison(region.begin(), region.range.bytes());
        region.pager->engine().abandon_in_child();
        region.pager->store().abandon_in_child();
    });
}

}  // namespace

void note_pool_opened() noexcept { open_pools.fetch_add(1); }
void note_pool_closed() noexcept { open_pools.fetch_sub(1); }

Result<void> watch_forks() {
    static const int error = pthread_atfork(nullptr, nullptr, enter_child);
    if (error == 0) return {};
    return fail_errno(HANARE_STATUS_NO_MEMORY, error, "cannot register with pthread_atfork");
}

}  // namespace hanare::pager
