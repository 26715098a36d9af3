// SPDX-License-Identifier: Apache-2.0
#include "bench/dlm_test1.hpp"

#include <algorithm>
#include <chrono>

#include "base/units.hpp"
#include "bench/kernel_attributes.hpp"

namespace hanare::bench {
namespace {

constexpr uint64_t kPageInts = kOsPageBytes / sizeof(uint32_t);

uint32_t value_of(uint64_t index, int pass) {
    return static_cast<uint32_t>(index) * 0x9e3779b1u + static_cast<uint32_t>(pass) * 0x85ebca6bu;
}

HANARE_KERNEL void write_all(uint32_t* ints, uint64_t count, int pass) {
    for (uint64_t i = 0; i < count; ++i) ints[i] = value_of(i, pass);
}

void write_one_per_page(uint32_t* ints, uint64_t count) {
    for (uint64_t i = 0; i < count; i += kPageInts) ints[i] = value_of(i, 1);
}

// The number of ints that are not those of `pass`, of all but the page's first.
HANARE_KERNEL uint64_t wrong_after_first(const uint32_t* ints, uint64_t page, int pass) {
    uint64_t wrong = 0;
    for (uint64_t i = page * kPageInts + 1; i < (page + 1) * kPageInts; ++i) {
        wrong += ints[i] != value_of(i, pass);
    }
    return wrong;
}

// `first_pass` wrote the first int of each page, `pass` all others.  The first ints are written
// again as they are: every block leaves this as the pass before has left it, dirty and in order.
Result<void> check(volatile uint32_t* ints, uint64_t count, int first_pass, int pass) {
    const auto* const plain = const_cast<const uint32_t*>(ints);
    for (uint64_t page = 0; page < count / kPageInts; ++page) {
        const uint32_t first = ints[page * kPageInts];
        if (first != value_of(page * kPageInts, first_pass) ||
            wrong_after_first(plain, page, pass) != 0) {
            return fail(HANARE_STATUS_CORRUPT, "page %llu is not as pass %d has written it",
                        static_cast<unsigned long long>(page), pass + 1);
        }
        ints[page * kPageInts] = first;
    }
    return {};
}

struct Counts {
    uint64_t swaps;
    uint64_t evictions_inline;
    uint64_t given_up;
};

// Blocks that have come and are not here any more; all zero for plain memory.
Result<Counts> counts_of(Memory& memory) {
    HANARE_TRY_ASSIGN(const hanare_counters counters, memory.counters());
    if (counters.block_bytes == 0) return Counts{};
    const uint64_t came = counters.demand_reads + counters.prefetch_reads + counters.zero_fills;
    return Counts{came - counters.resident_bytes / counters.block_bytes, counters.evictions_inline,
                  counters.write_backs + counters.clean_drops};
}

Result<Test1Run> run_passes(Memory& memory, uint32_t* ints, uint64_t count) {
    Test1Run run;
    for (int pass = 0; pass < kTest1Passes; ++pass) {
        HANARE_TRY_ASSIGN(const Counts before, counts_of(memory));
        const auto start = std::chrono::steady_clock::now();
        if (pass == 1) {
            write_one_per_page(ints, count);
        } else {
            write_all(ints, count, pass);
        }
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
        HANARE_TRY_ASSIGN(const Counts after, counts_of(memory));
        run[static_cast<size_t>(pass)] = {elapsed.count(), after.swaps - before.swaps,
                                          after.evictions_inline - before.evictions_inline,
                                          after.given_up - before.given_up};
        // What the second pass leaves shows what the first has written, too.
        if (pass == 1) HANARE_TRY(check(ints, count, 1, 0));
    }
    HANARE_TRY(check(ints, count, 2, 2));
    return run;
}

Result<uint32_t*> allocate(Memory& memory, uint64_t bytes) {
    HANARE_TRY_ASSIGN(double* const array, memory.allocate(bytes));
    return reinterpret_cast<uint32_t*>(array);
}

}  // namespace

const char* test1_pass_name(int pass) {
    constexpr const char* kNames[kTest1Passes] = {"first write", "one int per page", "write again"};
    return kNames[pass];
}

uint64_t test1_accesses(int pass, uint64_t bytes) {
    return bytes / (pass == 1 ? kOsPageBytes : sizeof(uint32_t));
}

uint64_t test1_expected_swaps(const Test1Setup& setup, int pass) {
    if (setup.local_blocks >= setup.blocks()) return 0;
    // Later passes meet each block when it has just gone.
    return pass == 0 ? setup.blocks() - setup.local_blocks : setup.blocks();
}

// A small pool shows what tables and descriptors take of it.
Result<uint64_t> test1_budget(const Test1Setup& setup) {
    HanareMemoryOptions options = setup.memory;
    const uint64_t blocks = std::min<uint64_t>(setup.blocks(), 64);
    options.local_bytes = blocks * options.block_bytes + setup.blocks() * kKiB + 4 * kMiB;
    HANARE_TRY_ASSIGN(const auto memory, hanare_memory(options));
    HANARE_TRY_ASSIGN(volatile uint32_t* const ints, allocate(*memory, setup.bytes));
    HANARE_TRY_ASSIGN(const hanare_counters before, memory->counters());
    if (before.block_bytes != options.block_bytes) {
        return fail(HANARE_STATUS_NOT_SUPPORTED, "the engine takes blocks of %s for them here",
                    format_size(before.block_bytes).c_str());
    }
    *ints = 1;
    HANARE_TRY_ASSIGN(const hanare_counters after, memory->counters());
    const uint64_t frames = after.frame_bytes / options.block_bytes;
    const uint64_t descriptor_bytes = (after.metadata_bytes - before.metadata_bytes) / frames;
    return before.metadata_bytes + setup.local_blocks * (options.block_bytes + descriptor_bytes);
}

Result<Test1Run> run_test1(const Test1Setup& setup) {
    HanareMemoryOptions options = setup.memory;
    HANARE_TRY_ASSIGN(options.local_bytes, test1_budget(setup));
    HANARE_TRY(warm_memory(options.local_bytes));
    HANARE_TRY_ASSIGN(const auto memory, hanare_memory(options));
    HANARE_TRY_ASSIGN(uint32_t* const ints, allocate(*memory, setup.bytes));
    return run_passes(*memory, ints, setup.bytes / sizeof(uint32_t));
}

Result<Test1Run> run_test1_plain(uint64_t bytes) {
    HANARE_TRY(warm_memory(bytes));
    const auto memory = plain_memory(HugePages::kSystem);
    HANARE_TRY_ASSIGN(uint32_t* const ints, allocate(*memory, bytes));
    return run_passes(*memory, ints, bytes / sizeof(uint32_t));
}

}  // namespace hanare::bench
