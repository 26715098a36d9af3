// SPDX-License-Identifier: Apache-2.0
//
// The array of one system of `hanare bench pager`, and the cases on it.  A case is prepared first,
// which brings memory into the state that it begins with and is not timed, and then measured.
// Used by one thread, which starts others for the accesses and joins them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bench/memory.hpp"
#include "bench/pager_case.hpp"
#include "bench/pattern.hpp"

namespace hanare::bench {

struct PagerArrayOptions {
    uint64_t bytes = 0;
    int threads = 1;
    bool can_drop = true;       // the memory can be made absent
    bool can_flush = true;      // there is something to flush
    double pass_s_max = 10;     // a pass that takes longer is stopped, and counts as far as it got
    double stream_s_min = 1;    // of mixed, in whole passes
    uint64_t accesses = 20000;  // of a random case, all threads together
    uint64_t seed = 1;          // of the random places
};

// What a case gave, by name:
//   rate, rate_with_flush   bytes of the array per second
//   time, p50, p99          microseconds per random access; of mixed, beside the stream
//   stream_alone            mixed: the stream's rate without the random reads
//   stream_kept             mixed: what part of that it keeps beside them
//   complete                0 when a pass was stopped
using PagerMetrics = std::map<std::string, double>;

class PagerArray {
public:
    static Result<PagerArray> allocate(Memory& memory, const PagerArrayOptions& options);

    Result<void> prepare(PagerCase which);
    // What is prepared.  CORRUPT names the index of a word that was not what it must be.
    Result<PagerMetrics> measure(PagerCase which);

private:
    enum class Kind { kFill, kRead, kAdvance, kOneWord, kTriad, kCheckTriad };
    // One pass of several threads, each over its share.
    struct Pass {
        double seconds = 0;
        uint64_t pages = 0;
        std::vector<PageRange> done;
        std::vector<PageRange> rest;  // of the shares, when it was stopped
    };

    PagerArray(Memory& memory, const PagerArrayOptions& options, uint64_t* words)
        : memory_(memory), options_(options), words_(words) {}

    PageRange all() const { return {0, options_.bytes / kOsPageBytes}; }
    PageRange third() const { return all().share(0, 3); }
    PageRange streamed_half() const { return all().share(0, 2); }

    std::optional<uint64_t> run_piece(Kind kind, PageRange pages);
    std::unexpected<Error> wrong(Kind kind, uint64_t page) const;
    Result<Pass> run_shares(Kind kind, const std::vector<PageRange>& shares, double seconds_max);
    Result<Pass> run_pass(Kind kind);
    // Complete, not timed and without advice to the kernel.
    Result<void> run_untimed(Kind kind, const std::vector<PageRange>& shares);
    std::vector<PageRange> shares_of(PageRange range) const;

    Result<void> begin_anew();
    Result<void> fill();
    Result<void> read_once();
    Result<void> go_cold();
    Result<PagerMetrics> measure_reads(Kind kind);
    Result<PagerMetrics> measure_writes(Kind kind);
    Result<PagerMetrics> measure_triad();
    Result<PagerMetrics> measure_random();
    Result<PagerMetrics> measure_mixed();
    Result<double> timed_flush();
    Result<double> stream_rate(PageRange range);

    Memory& memory_;
    PagerArrayOptions options_;
    uint64_t* words_;
    uint32_t pass_ = 0;       // which one's values the words hold
    bool is_filled_ = false;  // all of them do
    bool was_read_ = false;   // nothing but a reading pass over all of it has happened since
};

}  // namespace hanare::bench
