// SPDX-License-Identifier: Apache-2.0
//
// The page that `hanare run` shares with the programs that it started and with what these start: a
// budget for all of them together, and a row of figures for each that has far memory.  `hanare run`
// makes it (a memfd) and names it in HANARE_RUN_PAGE as /proc/PID/fd/N; whoever runs below maps it.
// Everything in it is atomic and survives whoever dies at any moment; nothing in it is a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hanare::telemetry {

// XX(name, text): figures of one process; bytes unless the name says otherwise.
#define HANARE_RUN_FIGURE_MAP(XX)                                                 \
    XX(far_bytes, "memory that Hanare keeps for the program, wherever it lies")   \
    XX(far_bytes_peak, "the most that this was")                                  \
    XX(used_bytes, "of it, what holds something, in whole blocks")                \
    XX(used_bytes_peak, "the most that this was, ten times a second")             \
    XX(local_bytes, "of it, in local memory")                                     \
    XX(local_bytes_peak, "the most that this was")                                \
    XX(budget_bytes, "what may be in local memory")                               \
    XX(heap_bytes_peak, "adopted from brk")                                       \
    XX(static_bytes_peak, "adopted from .bss")                                    \
    XX(mapping_bytes_peak, "adopted from mmap")                                   \
    XX(wait_ns, "nanoseconds that threads waited in faults, summed over threads") \
    XX(faults, "faults served")                                                   \
    XX(hits, "of those on memory that a store has, that did not wait for it")     \
    XX(misses, "of these, that waited for it, or for others who did")             \
    XX(read_bytes, "read from the stores")                                        \
    XX(written_bytes, "written to the stores")                                    \
    XX(protected_calls, "system calls whose far memory was held")                 \
    XX(rewritten_sites, "system call instructions that were rewritten")           \
    XX(left_sites, "system call instructions that could not be")                  \
    XX(forks, "children that inherited far memory")

// Where the memory of one area of addresses is: each of the parts, which are equally long, has so
// much of it in local memory, and so much kept anywhere, of 255.  Hints, ten times a second at
// most.
struct RunMap {
    static constexpr size_t kParts = 128;

    std::atomic<uint64_t> begin{0};
    std::atomic<uint64_t> bytes{0};  // 0: nothing of it was ever used
    std::array<std::atomic<uint8_t>, kParts> local{};
    std::array<std::atomic<uint8_t>, kParts> kept{};
};

// One process that has, or had, far memory.  Written by that process only, but for the end.
struct RunRow {
    enum State : uint32_t {
        kFree = 0,
        kLive = 1,
        kEnded = 2,    // may be claimed again
        kClaimed = 3,  // by one that fills it in
    };

    std::atomic<uint32_t> state{kFree};
    std::atomic<int32_t> process_id{0};
    std::atomic<uint32_t> shares{0};  // 1: it has a part of the budget, 0: not yet or not any more
    // Of a process that makes room by itself when there are more sharers: among how many its budget
    // was divided when its figures were written.  0: it does so only when it needs memory.
    std::atomic<uint32_t> divided_among{0};
    // 1: the process answers at a control socket of its own; 0: others tell of it.
    std::atomic<uint32_t> answers{0};
    // All its anonymous memory, what it shares counted, too, and its page tables; of that what it
    // takes however small its part of the budget; and that part.
    std::atomic<uint64_t> present_bytes{0};
    std::atomic<uint64_t> least_bytes{0};  // that it takes in any case
    std::atomic<uint64_t> share_bytes{0};
    // Faults within about the last second, and when they were counted (nanoseconds of
    // CLOCK_MONOTONIC): who needs memory more than others has more of the budget.
    std::atomic<uint64_t> activity{0};
    std::atomic<uint64_t> active_ns{0};
    std::array<std::atomic<char>, 16> command{};  // as in /proc/PID/comm, ends with a zero
#define HANARE_RUN_FIELD(name, text) std::atomic<uint64_t> name{0};
    HANARE_RUN_FIGURE_MAP(HANARE_RUN_FIELD)
#undef HANARE_RUN_FIELD
    // Where the page wants them.
    static constexpr size_t kMaps = 3;
    static constexpr std::array<const char*, kMaps> kMapNames = {"mappings", "heap", "static"};
    std::array<RunMap, kMaps> maps{};
};

// A forked child that has no row yet, and what is set aside for what it takes until then.  Of those
// that end without one `hanare run` clears `process_id`.
struct RunChild {
    std::atomic<int32_t> process_id{0};  // as its parent knows it, at first the parent's; 0: free
    std::atomic<uint64_t> bytes{0};
};

struct RunPage {
    static constexpr uint64_t kMagic = 0x35454741504e5552;  // "RUNPAGE5"
    static constexpr size_t kRows = 256;
    static constexpr size_t kChildren = 64;

    uint64_t magic = kMagic;
    uint64_t bytes = sizeof(RunPage);
    // Set before the first process starts.
    uint64_t budget_bytes = 0;  // for all processes together
    uint64_t wants_maps = 0;    // 1: processes say where their memory is
    // Rows whose `shares` is 1: the budget is divided among them.  Whoever finds a dead process
    // takes it out (compare-and-swap of `shares`).
    std::atomic<uint32_t> sharers{0};
    std::atomic<uint32_t> processes{0};  // that ever had far memory
    // Of all processes together.
    std::atomic<uint64_t> far_bytes{0};
    std::atomic<uint64_t> far_bytes_peak{0};
    std::array<RunRow, kRows> rows{};
    std::array<RunChild, kChildren> children{};
};

static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace hanare::telemetry
