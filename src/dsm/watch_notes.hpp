// SPDX-License-Identifier: Apache-2.0
//
// What all tasks have noted (watch.hpp), brought together: the blocks that cost most in each, the
// code that has raised most faults, and what each allocation has cost.  Ordinary threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "dsm/counters.hpp"
#include "dsm/heap.hpp"
#include "dsm/segment.hpp"
#include "dsm/watch.hpp"
#include "job/group.hpp"

namespace hanare::dsm {

// Who takes part, and what goes into it beside the notes.
struct WatchedTask {
    uint32_t rank = 0;
    uint32_t size = 0;
    const Segment& segment;
    const Counters& counters;
    Heap* heap = nullptr;  // of task 0
};

inline constexpr size_t kWatchedCounts = 15;
extern const char* const kWatchedCountNames[kWatchedCounts];

// What tasks send each other has no pointers.
struct BlockRecord {
    uint32_t block;
    uint32_t reads;
    uint32_t writes;
    uint32_t fetched;
    uint32_t dropped;
    uint32_t diffs;
    uint64_t diff_bytes;
    uint32_t read_site;  // among the sender's places, plus one
    uint32_t write_site;
    std::array<uint64_t, Watch::kWrittenWords> written;

    uint64_t cost() const { return uint64_t{reads} + writes + fetched + diffs; }
};
struct SiteRecord {
    uint64_t reads;
    uint64_t writes;
    uint32_t place;
    uint32_t unused;
};
struct RegionRecord {
    uint64_t offset;
    uint64_t bytes;
};
struct RegionCosts {
    uint64_t reads;
    uint64_t writes;
    uint64_t fetched;
    uint64_t dropped;
    uint64_t diffs;
    uint64_t diff_bytes;

    uint64_t cost() const { return reads + writes + fetched + diffs; }
};
struct TaskNotes {
    std::array<uint64_t, kWatchedCounts> counts;
    std::vector<BlockRecord> blocks;
    std::vector<SiteRecord> sites;
    std::vector<std::string> places;

    const char* place(uint32_t number) const {
        return number == 0 || number > places.size() ? "unknown code" : places[number - 1].c_str();
    }
};

struct Region {
    RegionRecord record{};
    RegionCosts costs{};
};

// Collective.
Result<std::vector<TaskNotes>> gather_notes(const Watch& watch, const WatchedTask& task,
                                            job::Group& group, uint64_t deadline_ns);
// Collective.  The largest ones that are allocated now, in the order of their addresses.
Result<std::vector<Region>> gather_regions(const Watch& watch, const WatchedTask& task,
                                           job::Group& group, uint64_t deadline_ns);

}  // namespace hanare::dsm
