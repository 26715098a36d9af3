/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics of a pool or a region.  The struct may grow at its end; struct_size tells which
 * fields the caller knows.
 */
#ifndef HANARE_STATS_H
#define HANARE_STATS_H

#include "hanare/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

/* XX(name, text): cumulative counters, kept per region and summed for a pool. */
#define HANARE_COUNTER_MAP(XX)                                                            \
    XX(read_faults, "faults on absent blocks that only read")                             \
    XX(write_faults, "faults on absent blocks that write")                                \
    XX(upgrade_faults, "first writes to clean blocks")                                    \
    XX(wait_faults, "faults that waited for another thread's work on the same block")     \
    XX(staged_hits, "faults served from a frame without waiting for the store")           \
    XX(demand_reads, "blocks read from the store by a fault")                             \
    XX(part_reads, "parts of blocks read from the store by a random access")              \
    XX(completions, "blocks present in part that were wanted as a whole")                 \
    XX(prefetch_reads, "blocks read from the store ahead of use")                         \
    XX(prefetch_unused, "prefetched blocks given up before use")                          \
    XX(zero_fills, "blocks created as zeros without a read")                              \
    XX(write_backs, "dirty blocks written to the store")                                  \
    XX(clean_drops, "clean blocks given up without a write")                              \
    XX(evictions_inline, "blocks evicted by a faulting thread because no frame was free") \
    XX(read_bytes, "bytes read from the store")                                           \
    XX(written_bytes, "bytes written to the store")                                       \
    XX(checksum_errors, "blocks that came back different from what was written")          \
    XX(store_errors, "reads and writes that the store refused")                           \
    XX(wait_ns, "nanoseconds that threads waited for their faults to be served, in all")

/* XX(name, text): values at the time of the call. */
#define HANARE_GAUGE_MAP(XX)                                      \
    XX(virtual_bytes, "size of the regions")                      \
    XX(resident_bytes, "bytes of blocks in local frames")         \
    XX(dirty_bytes, "bytes of blocks that differ from the store") \
    XX(pinned_bytes, "bytes of pinned blocks")                    \
    XX(frame_bytes, "local memory that holds or held frames")     \
    XX(free_frame_bytes, "of these, frames without a block")      \
    XX(metadata_bytes, "local memory for the tables of the pool") \
    XX(budget_bytes, "the local budget (pool only)")              \
    XX(block_bytes, "block size (region only)")

typedef struct hanare_counters {
    size_t struct_size;
#define HANARE_STATS_FIELD(name, text) uint64_t name;
    HANARE_COUNTER_MAP(HANARE_STATS_FIELD)
    HANARE_GAUGE_MAP(HANARE_STATS_FIELD)
#undef HANARE_STATS_FIELD
} hanare_counters;

/* Statistics of the region that contains `address`, or of the whole pool when it is NULL.  Set
 * counters->struct_size before the call.  Counters are exact, gauges a snapshot. */
HANARE_API hanare_status hanare_stats(hanare_pool *pool, const void *address,
                                      hanare_counters *counters);

#ifdef __cplusplus
}
#endif

#endif
