// SPDX-License-Identifier: Apache-2.0
//
// Counters: what a task has done for its shared memory (hanare/dsm.h).  Any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace hanare::dsm {

class Watch;

struct Counters {
    using Count = std::atomic<uint64_t>;

    Count read_faults{0};
    Count write_faults{0};
    Count fetched_blocks{0};
    Count invalidated_blocks{0};
    Count twins{0};
    Count diffs{0};
    Count diff_bytes{0};
    Count messages{0};
    Count message_bytes{0};
    Count barrier_messages{0};
    Count barrier_bytes{0};
    Count barriers{0};
    Count locks{0};
    Count remote_locks{0};
    Count wait_ns{0};

    // What more is recorded, where a report is wanted (watch.hpp); set before anything is counted.
    Watch* watch = nullptr;

    static void add(Count& count, uint64_t more = 1) noexcept {
        count.fetch_add(more, std::memory_order_relaxed);
    }
};

}  // namespace hanare::dsm
