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
#include <span>

namespace hanare::telemetry {

// A process: its number, and the namespace in which it has that (the kernel's number for it; 0: not
// known).  In one word, so that both are always of the same process.
struct alignas(8) RunProcess {
    int32_t id = 0;  // 0: none
    uint32_t name_space = 0;

    // Whether what a number means here is what it means there.
    bool can_tell_of(const RunProcess& other) const noexcept {
        return name_space != 0 && name_space == other.name_space;
    }
    bool operator==(const RunProcess&) const = default;
};
static_assert(std::atomic<RunProcess>::is_always_lock_free);

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
    std::atomic<RunProcess> process{};
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
// that end without one `hanare run` clears `process`.
struct RunChild {
    std::atomic<RunProcess> process{};  // as its parent knows it, at first the parent; none: free
    std::atomic<uint64_t> bytes{0};
};

struct RunPage {
    static constexpr uint64_t kMagic = 0x36454741504e5552;  // "RUNPAGE6"
    static constexpr size_t kRows = 1024;
    // As many keep what they tell of processes that have ended while there are free ones.
    static constexpr size_t kUsualRows = 256;
    static constexpr size_t kChildren = 64;

    uint64_t magic = kMagic;
    uint64_t bytes = sizeof(RunPage);
    // Set before the first process starts.
    uint64_t budget_bytes = 0;  // for all processes together
    uint64_t wants_maps = 0;    // 1: processes say where their memory is
    RunProcess launcher;        // `hanare run`
    // Rows whose `shares` is 1: the budget is divided among them.  `hanare run` takes dead
    // processes out (compare-and-swap of `shares`); once it has ended, the others do.
    std::atomic<uint32_t> sharers{0};
    std::atomic<uint32_t> processes{0};  // that ever had far memory
    std::atomic<uint32_t> rows_used{0};  // one past the last that was ever taken
    std::atomic<uint32_t> is_left{0};    // 1: `hanare run` has ended
    std::atomic<uint64_t> looked_ns{0};  // when it looked at the page last (CLOCK_MONOTONIC)
    // Of all processes together.
    std::atomic<uint64_t> far_bytes{0};
    std::atomic<uint64_t> far_bytes_peak{0};
    std::array<RunRow, kRows> rows{};
    std::array<RunChild, kChildren> children{};

    // Those that nobody ever took are not even there.
    std::span<RunRow> used_rows() noexcept {
        return std::span(rows).first(rows_used.load() < kRows ? rows_used.load() : kRows);
    }
    std::span<const RunRow> used_rows() const noexcept {
        return std::span(rows).first(rows_used.load() < kRows ? rows_used.load() : kRows);
    }
};

static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace hanare::telemetry
