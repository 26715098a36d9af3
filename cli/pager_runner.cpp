// SPDX-License-Identifier: Apache-2.0
#include "cli/pager_runner.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "bench/memory.hpp"
#include "bench/table.hpp"
#include "cli/demo_progress.hpp"
#include "sys/interrupt.hpp"

namespace hanare::cli {
namespace {

using bench::PagerCase;

constexpr int kFailuresMax = 2;  // of a system, before it is given up

class Runner {
public:
    explicit Runner(const PagerSeries& series) : series_(series) {
        for (const int threads : series.threads) {
            for (const PagerCase which : series.cases) {
                if (series.has(which, threads)) steps_ += series.systems.size();
            }
        }
        steps_ *= series.rounds;
    }

    PagerOutcome run() {
        const auto rounds = static_cast<int>(series_.rounds);
        for (int round = 0; round < rounds && !stopped(); ++round) {
            for (const int threads : series_.threads) {
                for (const bool with_zram : {false, true}) {
                    if (!stopped()) run_sitting(round, threads, with_zram);
                }
            }
        }
        progress_.clear();
        // By system, and otherwise as they were taken.  (std::stable_sort: clang 19 warns about
        // what it uses in the library of gcc 12.)
        std::map<size_t, bench::PagerSamples> by_place;
        for (auto& sample : outcome_.samples) {
            by_place[place_of(sample.system)].push_back(std::move(sample));
        }
        outcome_.samples.clear();
        for (auto& [place, samples] : by_place) {
            std::ranges::move(samples, std::back_inserter(outcome_.samples));
        }
        return std::move(outcome_);
    }

private:
    // Of the system in what was asked for; the parts of the raw device come last.
    size_t place_of(const std::string& name) const {
        const auto found = std::find_if(series_.systems.begin(), series_.systems.end(),
                                        [&](const auto& system) { return system.name == name; });
        return static_cast<size_t>(found - series_.systems.begin());
    }

    bool is_given_up(const PagerSystem& system) {
        return left_out_.contains(system.name) || failures_[system.name] >= kFailuresMax;
    }

    bool stopped() const { return sys::Interrupt::requested() || !outcome_.error.empty(); }

    // Swap goes to one device at a time, whoever swaps: zram has to wait until swap is done.
    bool sits(const PagerSystem& system, bool with_zram) const {
        const auto& systems = series_.systems;
        const bool has_swap = std::any_of(systems.begin(), systems.end(),
                                          [](const auto& other) { return other.kind == "swap"; });
        return with_zram == (has_swap && system.kind == "zram");
    }

    // Some systems, alive at the same time and taking turns case by case.
    void run_sitting(int round, int threads, bool with_zram) {
        std::deque<PagerStation> stations;
        for (const PagerSystem& system : series_.systems) {
            if (!sits(system, with_zram) || is_given_up(system)) continue;
            if (system.kind == "plain" && series_.setting.plan.no_plain) {
                give_up(system, {PagerReply::Kind::kLeftOut, *series_.setting.plan.no_plain});
                continue;
            }
            stations.emplace_back(system, series_.setting);
            const auto seed = static_cast<uint64_t>(round) * 64 + static_cast<uint64_t>(threads);
            const PagerReply reply = stations.back().open(threads, seed);
            if (!reply.is_done()) {
                give_up(system, reply);
                close(stations.back());
                stations.pop_back();
            }
            if (stopped()) return;
        }
        for (const PagerCase which : series_.cases) {
            if (series_.has(which, threads)) run_case(stations, round, threads, which);
        }
        for (PagerStation& station : stations) close(station);
    }

    // Every system once, each round and each case beginning with another one.
    void run_case(std::deque<PagerStation>& stations, int round, int threads, PagerCase which) {
        const size_t first = static_cast<size_t>(round) + static_cast<size_t>(which);
        for (size_t i = 0; i < stations.size() && !stopped(); ++i) {
            PagerStation& station = stations[(first + i) % stations.size()];
            if (!station.is_open()) continue;
            progress_.begin(bench::format("[%zu/%zu] %s, %d thread%s: %s", ++step_, steps_,
                                          bench::pager_case_name(which), threads,
                                          threads == 1 ? "" : "s", station.system().name.c_str()),
                            0);
            PagerReply reply = station.prepare(which);
            if (reply.is_done()) reply = measure(station, which);
            if (!reply.is_done()) {
                give_up(station.system(), reply);
                close(station);
            }
            for (const PagerResult& result : reply.results) {
                outcome_.samples.push_back({round, threads, which, result.system, result.metrics});
            }
        }
    }

    PagerReply measure(PagerStation& station, PagerCase which) {
        const auto warm = bench::warm_memory(series_.setting.plan.limit_bytes);
        if (!warm) return {PagerReply::Kind::kFailed, warm.error().text};
        return station.measure(which);
    }

    void close(PagerStation& station) {
        station.close();
        for (const std::string& note : station.notes()) remark(station.system().name, note);
    }

    void give_up(const PagerSystem& system, const PagerReply& reply) {
        using Kind = PagerReply::Kind;
        if (reply.kind == Kind::kLeftOut) left_out_.insert(system.name);
        ++failures_[system.name];
        if (reply.kind == Kind::kInterrupted) return;
        if (reply.kind == Kind::kWrong) {
            outcome_.error = system.name + " gave a wrong value: " + reply.text;
        } else if (system.name == bench::kHanareSystem) {
            outcome_.error = system.name + " did not finish: " + reply.text;
        } else {
            const bool left_out = reply.kind == Kind::kLeftOut;
            remark(system.name, (left_out ? "left out: " : "did not finish: ") + reply.text);
        }
    }

    void remark(const std::string& system, const std::string& text) {
        const std::string line = system + ": " + text;
        auto& remarks = outcome_.remarks;
        if (std::find(remarks.begin(), remarks.end(), line) == remarks.end()) {
            remarks.push_back(line);
        }
    }

    const PagerSeries& series_;
    PagerOutcome outcome_;
    std::map<std::string, int> failures_;  // by system
    std::set<std::string> left_out_;       // systems that cannot run here
    Progress progress_;
    size_t step_ = 0;
    size_t steps_ = 0;
};

}  // namespace

PagerOutcome run_pager_series(const PagerSeries& series) { return Runner(series).run(); }

}  // namespace hanare::cli
