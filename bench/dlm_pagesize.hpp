// SPDX-License-Identifier: Apache-2.0
//
// What a swap costs by block size (DLM 2009, section 5.1.2, Fig. 13): ints that lie 2 MiB apart in
// far memory are written, so that each of 1000 writes fetches a block and puts out another, which
// was written before.  The mean time of a write is what counts.  Used by one thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bench/memory.hpp"
#include "bench/record.hpp"

namespace hanare::bench {

inline constexpr uint64_t kSwapStrideBytes = 2u << 20;
inline constexpr uint32_t kSwapWrites = 1000;
// The writes go round and round over so many ints, of whose blocks so many are in memory: each has
// gone when its turn comes.
inline constexpr uint32_t kSwapPlaces = 125;
inline constexpr uint32_t kSwapLocalBlocks = 32;
inline constexpr uint64_t kSwapDataBytes = kSwapPlaces * kSwapStrideBytes;

// One row of the figure's table (a).
struct PaperSwap {
    uint64_t block_bytes;
    double gbe_us;      // over 1 Gbit Ethernet
    double ten_gbe_us;  // over 10 Gbit Ethernet
};
const std::array<PaperSwap, 9>& paper_swaps();

// Microseconds for each write, by the paper's scheme (round_robin, no read-ahead); local_bytes is
// found out.  INTERNAL: a write was not one swap; CORRUPT: an int is not what was written;
// NOT_SUPPORTED: the engine takes other blocks.
Result<double> time_swaps(const HanareMemoryOptions& memory);

struct SwapTimes {
    PaperSwap paper;
    std::vector<double> raw;     // microseconds by round: a put and a get of a block by hand
    std::vector<double> scheme;  // the paper's
    std::vector<double> sealed;  // the same, blocks encrypted
};

std::string swap_table(const std::vector<SwapTimes>& all);
std::vector<Record> swap_records(const std::vector<SwapTimes>& all, const std::string& engine);

}  // namespace hanare::bench
