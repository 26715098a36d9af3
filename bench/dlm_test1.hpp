// SPDX-License-Identifier: Apache-2.0
//
// Test 1 of the DLM paper (2009, section 5.1.1): an array of ints that is larger than local memory
// is written (1) from its beginning to its end for the first time, (2) once per OS page, (3) from
// beginning to end again.  Under the paper's replacement the number of swaps of each pass follows
// from the sizes alone; a swap is a block that comes while another has to go.  Between the passes,
// and untimed, all that was written is checked.  Used by one thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "bench/memory.hpp"

namespace hanare::bench {

inline constexpr int kTest1Passes = 3;
// "first write", ...
const char* test1_pass_name(int pass);
uint64_t test1_accesses(int pass, uint64_t bytes);

struct Test1Setup {
    uint64_t bytes = 0;  // whole blocks
    uint64_t local_blocks = 0;
    // local_bytes is found out from local_blocks.
    HanareMemoryOptions memory;

    uint64_t blocks() const { return bytes / memory.block_bytes; }
};

// The budget that holds so many blocks and not one more.  NOT_SUPPORTED where the pool takes other
// blocks than asked for.
Result<uint64_t> test1_budget(const Test1Setup& setup);

// Of the paper's scheme, where the resident block that came first is the next to go.
uint64_t test1_expected_swaps(const Test1Setup& setup, int pass);

struct Test1Pass {
    double seconds = 0;
    uint64_t swaps = 0;
    // What the counters say of the same: blocks given up by the thread that faulted, and blocks
    // given up, written or not.
    uint64_t evictions_inline = 0;
    uint64_t given_up = 0;
};
using Test1Run = std::array<Test1Pass, kTest1Passes>;

// CORRUPT names an int that is not what was written; NOT_SUPPORTED where the pool takes other
// blocks than asked for.
Result<Test1Run> run_test1(const Test1Setup& setup);
// The ordinary program; only its times mean something.
Result<Test1Run> run_test1_plain(uint64_t bytes);

}  // namespace hanare::bench
