// SPDX-License-Identifier: Apache-2.0
#include "bench/pager_array.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <thread>

#include "bench/random_reads.hpp"

namespace hanare::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kPiecePages = 64;  // between two looks at the clock
constexpr double kForever = 1e9;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

double rate_of(uint64_t pages, double seconds) {
    return static_cast<double>(pages * kOsPageBytes) / seconds;
}

}  // namespace

Result<PagerArray> PagerArray::allocate(Memory& memory, const PagerArrayOptions& options) {
    HANARE_TRY_ASSIGN(double* const address, memory.allocate(options.bytes));
    return PagerArray(memory, options, reinterpret_cast<uint64_t*>(address));
}

// Returns a page that is not what it must be.
std::optional<uint64_t> PagerArray::run_piece(Kind kind, PageRange pages) {
    auto* const doubles = reinterpret_cast<double*>(words_);
    const uint64_t b = third().last;
    const uint64_t c = 2 * b;
    switch (kind) {
        case Kind::kFill: pattern_fill(words_, pages, pass_ + 1); return std::nullopt;
        case Kind::kRead: return pattern_check(words_, pages, pass_);
        case Kind::kAdvance: return pattern_advance(words_, pages, pass_);
        case Kind::kOneWord: return pattern_check_one_word(words_, pages, pass_);
        case Kind::kTriad:
            pattern_triad(
                doubles + pages.first * kPageWords, doubles + (b + pages.first) * kPageWords,
                doubles + (c + pages.first) * kPageWords, (pages.last - pages.first) * kPageWords);
            return std::nullopt;
        case Kind::kCheckTriad: return pattern_check_triad(doubles, pages, b, c, pass_);
    }
    return std::nullopt;
}

std::unexpected<Error> PagerArray::wrong(Kind kind, uint64_t page) const {
    if (kind == Kind::kCheckTriad) {
        return fail(HANARE_STATUS_CORRUPT, "a word of those from %llu on is wrong after the triad",
                    static_cast<unsigned long long>(page * kPageWords));
    }
    // A page that was advanced already holds the next pass.
    const uint32_t pass = kind == Kind::kAdvance ? pass_ + 1 : pass_;
    const uint64_t index = pattern_wrong_word(words_, page, pass);
    return fail(HANARE_STATUS_CORRUPT, "word %llu is %016llx, and must be %016llx (pass %u)",
                static_cast<unsigned long long>(index),
                static_cast<unsigned long long>(words_[index]),
                static_cast<unsigned long long>(pattern_word(index, pass)), pass);
}

std::vector<PageRange> PagerArray::shares_of(PageRange range) const {
    std::vector<PageRange> shares;
    const auto threads = static_cast<uint64_t>(options_.threads);
    for (uint64_t i = 0; i < threads; ++i) shares.push_back(range.share(i, threads));
    return shares;
}

Result<PagerArray::Pass> PagerArray::run_shares(Kind kind, const std::vector<PageRange>& shares,
                                                double seconds_max) {
    struct Outcome {
        uint64_t next = 0;
        std::optional<uint64_t> wrong_page;
    };
    std::vector<Outcome> outcomes(shares.size());
    const auto start = Clock::now();
    const auto run = [&](size_t i) {
        const PageRange share = shares[i];
        uint64_t page = share.first;
        while (page < share.last && !outcomes[i].wrong_page && seconds_since(start) < seconds_max) {
            const uint64_t end = std::min(page + kPiecePages, share.last);
            outcomes[i].wrong_page = run_piece(kind, {page, end});
            page = end;
        }
        outcomes[i].next = page;
    };
    {
        std::vector<std::jthread> others;
        for (size_t i = 1; i < shares.size(); ++i) others.emplace_back(run, i);
        run(0);
    }
    Pass pass;
    pass.seconds = seconds_since(start);
    for (size_t i = 0; i < shares.size(); ++i) {
        if (outcomes[i].wrong_page) return wrong(kind, *outcomes[i].wrong_page);
        pass.done.push_back({shares[i].first, outcomes[i].next});
        pass.rest.push_back({outcomes[i].next, shares[i].last});
        pass.pages += outcomes[i].next - shares[i].first;
    }
    return pass;
}

Result<PagerArray::Pass> PagerArray::run_pass(Kind kind) {
    const PageRange range = kind == Kind::kTriad ? third() : all();
    return run_shares(kind, shares_of(range), options_.pass_s_max);
}

Result<void> PagerArray::run_untimed(Kind kind, const std::vector<PageRange>& shares) {
    HANARE_TRY(memory_.use_advice(false));
    HANARE_TRY(run_shares(kind, shares, kForever));
    return memory_.use_advice(true);
}

Result<void> PagerArray::fill() {
    if (is_filled_) return {};
    HANARE_TRY(run_untimed(Kind::kFill, shares_of(all())));
    ++pass_;
    is_filled_ = true;
    was_read_ = false;
    return {};
}

// The state after a reading pass: clean, with the end of each share in memory, or whatever the
// system keeps.
Result<void> PagerArray::read_once() {
    HANARE_TRY(fill());
    HANARE_TRY(memory_.flush());
    if (!was_read_) HANARE_TRY(run_untimed(Kind::kRead, shares_of(all())));
    was_read_ = true;
    return {};
}

Result<void> PagerArray::go_cold() {
    HANARE_TRY(fill());
    HANARE_TRY(memory_.flush());
    was_read_ = false;
    return options_.can_drop ? memory_.drop() : Result<void>{};
}

// No value of it has been read or written yet, on a disk where there were others before.
Result<void> PagerArray::begin_anew() {
    HANARE_TRY(fill());
    HANARE_TRY(memory_.flush());
    HANARE_TRY_ASSIGN(double* const address,
                      memory_.allocate_again(reinterpret_cast<double*>(words_)));
    words_ = reinterpret_cast<uint64_t*>(address);
    return {};
}

Result<void> PagerArray::prepare(PagerCase which) {
    switch (which) {
        case PagerCase::kSeqWrite: return begin_anew();
        case PagerCase::kSeqReadCold:
        case PagerCase::kStrided:
        case PagerCase::kTriad: return go_cold();
        case PagerCase::kSeqReadWarm:
        case PagerCase::kSeqRmw:
        case PagerCase::kRandomClean: return read_once();
        case PagerCase::kMixed:
            // The stream alone is measured first, and begins as it goes on.
            HANARE_TRY(read_once());
            was_read_ = false;
            return run_untimed(Kind::kRead, {streamed_half()});
        case PagerCase::kRandomDirty: is_filled_ = false; return fill();
    }
    return {};
}

Result<PagerMetrics> PagerArray::measure(PagerCase which) {
    switch (which) {
        case PagerCase::kSeqWrite: return measure_writes(Kind::kFill);
        case PagerCase::kSeqReadCold:
        case PagerCase::kSeqReadWarm: return measure_reads(Kind::kRead);
        case PagerCase::kStrided: return measure_reads(Kind::kOneWord);
        case PagerCase::kSeqRmw: return measure_writes(Kind::kAdvance);
        case PagerCase::kRandomClean:
        case PagerCase::kRandomDirty: return measure_random();
        case PagerCase::kMixed: return measure_mixed();
        case PagerCase::kTriad: return measure_triad();
    }
    return PagerMetrics{};
}

Result<double> PagerArray::timed_flush() {
    const auto start = Clock::now();
    HANARE_TRY(memory_.flush());
    return seconds_since(start);
}

Result<PagerMetrics> PagerArray::measure_reads(Kind kind) {
    HANARE_TRY_ASSIGN(const Pass pass, run_pass(kind));
    const bool complete = pass.pages == all().last;
    was_read_ = complete;
    return PagerMetrics{{"rate", rate_of(pass.pages, pass.seconds)}, {"complete", complete}};
}

Result<PagerMetrics> PagerArray::measure_writes(Kind kind) {
    was_read_ = false;
    HANARE_TRY_ASSIGN(const Pass pass, run_pass(kind));
    PagerMetrics metrics = {{"rate", rate_of(pass.pages, pass.seconds)},
                            {"complete", pass.pages == all().last}};
    HANARE_TRY_ASSIGN(const double flush_seconds, timed_flush());
    if (options_.can_flush) {
        metrics["rate_with_flush"] = rate_of(pass.pages, pass.seconds + flush_seconds);
    }
    HANARE_TRY(run_untimed(kind, pass.rest));
    HANARE_TRY(memory_.flush());
    ++pass_;
    is_filled_ = true;
    return metrics;
}

Result<PagerMetrics> PagerArray::measure_triad() {
    was_read_ = false;
    HANARE_TRY_ASSIGN(const Pass pass, run_pass(Kind::kTriad));
    const uint64_t pages = 3 * pass.pages;  // a, b and c
    PagerMetrics metrics = {{"rate", rate_of(pages, pass.seconds)},
                            {"complete", pass.pages == third().last}};
    HANARE_TRY_ASSIGN(const double flush_seconds, timed_flush());
    if (options_.can_flush) {
        metrics["rate_with_flush"] = rate_of(pages, pass.seconds + flush_seconds);
    }
    is_filled_ = false;
    HANARE_TRY(run_untimed(Kind::kCheckTriad, pass.done));
    return metrics;
}

Result<PagerMetrics> PagerArray::measure_random() {
    was_read_ = false;
    const uint64_t accesses = options_.accesses - options_.accesses % shares_of(all()).size();
    HANARE_TRY_ASSIGN(const AccessTimes times, run_random_reads({.words = words_,
                                                                 .pages = all(),
                                                                 .pass = pass_,
                                                                 .threads = options_.threads,
                                                                 .accesses_max = accesses,
                                                                 .seconds_max = options_.pass_s_max,
                                                                 .seed = options_.seed}));
    HANARE_TRY(memory_.flush());
    return PagerMetrics{{"time", times.mean_us},
                        {"p50", times.p50_us},
                        {"p99", times.p99_us},
                        {"accesses", static_cast<double>(times.count)},
                        {"complete", times.count == accesses}};
}

// One thread over the range again and again, in whole passes unless they take too long.
Result<double> PagerArray::stream_rate(PageRange range) {
    double seconds = 0;
    uint64_t pages = 0;
    while (seconds < std::min(options_.stream_s_min, options_.pass_s_max)) {
        HANARE_TRY_ASSIGN(const Pass pass,
                          run_shares(Kind::kRead, {range}, options_.pass_s_max - seconds));
        seconds += pass.seconds;
        pages += pass.pages;
    }
    return rate_of(pages, seconds);
}

Result<PagerMetrics> PagerArray::measure_mixed() {
    was_read_ = false;
    const PageRange streamed = streamed_half();
    HANARE_TRY_ASSIGN(const double alone, stream_rate(streamed));
    std::atomic<bool> stop{false};
    Result<AccessTimes> times;
    Result<double> beside = 0;
    {
        const std::jthread random([&] {
            times = run_random_reads({.words = words_,
                                      .pages = all().share(1, 2),
                                      .pass = pass_,
                                      .accesses_max = std::numeric_limits<uint32_t>::max(),
                                      .seconds_max = kForever,
                                      .seed = options_.seed,
                                      .stop = &stop});
        });
        beside = stream_rate(streamed);
        stop = true;
    }
    if (!beside) return std::unexpected(beside.error());
    if (!times) return std::unexpected(times.error());
    HANARE_TRY(memory_.flush());
    return PagerMetrics{
        {"rate", *beside},        {"stream_alone", alone}, {"stream_kept", *beside / alone},
        {"time", times->mean_us}, {"p50", times->p50_us},  {"p99", times->p99_us},
        {"complete", 1}};
}

}  // namespace hanare::bench
