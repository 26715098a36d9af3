// SPDX-License-Identifier: Apache-2.0
#include "bench/stencil_report.hpp"

#include <algorithm>
#include <functional>
#include <optional>

#include "bench/table.hpp"

namespace hanare::bench {
namespace {

constexpr const char* kBench = "stencil";
constexpr const char* kCase = "7 points";
constexpr const char* kNone = "-";
constexpr double kTolerance = 1e-12;  // relative, where the order of operations differs
constexpr double kMillion = 1e6;

using Samples = std::vector<StencilSample>;

bool is_of(const StencilSample& sample, const std::string& system) {
    return sample.system == system && sample.failure.empty();
}

std::vector<double> values(const Samples& samples, const std::string& system,
                           const std::function<double(const StencilSample&)>& value) {
    std::vector<double> found;
    for (const StencilSample& sample : samples) {
        if (is_of(sample, system)) found.push_back(value(sample));
    }
    return found;
}

// Of runs of the same round.
std::vector<double> pairs(
    const Samples& samples, const std::string& system, const std::string& other,
    const std::function<double(const StencilSample&, const StencilSample&)>& value) {
    std::vector<double> found;
    for (const StencilSample& sample : samples) {
        if (!is_of(sample, system)) continue;
        const auto beside = std::ranges::find_if(samples, [&](const StencilSample& each) {
            return is_of(each, other) && each.round == sample.round;
        });
        if (beside != samples.end()) found.push_back(value(sample, *beside));
    }
    return found;
}

std::vector<double> speeds(const Samples& samples, const std::string& system,
                           const std::string& other) {
    return pairs(samples, system, other, [](const StencilSample& a, const StencilSample& b) {
        return a.updates_per_s() / b.updates_per_s();
    });
}

double bytes_of_minimum(const StencilSample& sample) {
    const StencilOutcome& outcome = sample.outcome;
    if (outcome.minimal_bytes == 0) return 0;
    const uint64_t moved = outcome.read_bytes + outcome.written_bytes - outcome.snapshot_bytes;
    return static_cast<double>(moved) / static_cast<double>(outcome.minimal_bytes);
}

std::string median_cell(const std::vector<double>& found, const char* pattern, double unit = 1) {
    if (found.empty()) return kNone;
    const double median = summarize(found).median / unit;
    char text[32];
    std::snprintf(text, sizeof text, pattern, median);
    return text;
}

std::string failure_of(const Samples& samples, const std::string& system) {
    for (const StencilSample& sample : samples) {
        if (sample.system == system && !sample.failure.empty()) return sample.failure;
    }
    return kNone;
}

// What is asked of a number: `floor` and `goal` are the least, or the most, that it may be; 0:
// none.
struct Verdict {
    std::string text;
    const char* metric;
    std::string system;
    std::vector<double> found;
    bool is_least = true;
    double floor = 0;
    double goal = 0;

    bool meets(double bound) const {
        const double median = summarize(found).median;
        return is_least ? median >= bound : median <= bound;
    }
    const char* word() const {
        if (goal != 0 && meets(goal)) return "goal met";
        if (floor != 0) return meets(floor) ? (goal != 0 ? "floor met" : "met") : "floor missed";
        return "goal missed";
    }
};

// Of the time without: what ping-pong takes, and snapshots beyond their bytes at the file's speed.
std::vector<double> overheads(const Samples& samples, const std::string& system,
                              const std::string& without) {
    return pairs(samples, system, without, [](const StencilSample& a, const StencilSample& b) {
        double seconds = a.outcome.seconds;
        if (a.outcome.snapshot_bytes > 0 && a.outcome.write_bytes_per_s > 0) {
            seconds -= static_cast<double>(a.outcome.snapshot_bytes) / a.outcome.write_bytes_per_s;
        }
        return seconds / b.outcome.seconds - 1;
    });
}

std::vector<Verdict> verdicts(const Samples& samples, const std::vector<uint64_t>& times) {
    const uint64_t chosen = stencil_limit_times(times);
    const std::string at = stencil_grid_name(chosen);
    std::vector<Verdict> all;
    for (const uint64_t each : times) {
        const std::string name = stencil_grid_name(each);
        // The numbers are for 8 and 16 times.
        const bool is_eight = each == 8;
        all.push_back({name + " by Hanare in memory", "speed_of_memory", name,
                       speeds(samples, name, kStencilMemory), true, is_eight ? 0.85 : 0,
                       is_eight     ? 0.97
                       : each == 16 ? 0.95
                                    : 0});
        all.push_back({name + ", bytes by the least", "bytes_of_minimum", name,
                       values(samples, name, bytes_of_minimum), false, 1.02, 0});
    }
    all.push_back(
        {at + " by naive", "speed_of_naive", at, speeds(samples, at, kStencilNaive), true, 2, 2.5});
    all.push_back({at + " by spatial blocks", "speed_of_spatial", at,
                   speeds(samples, at, kStencilSpatial), true, 0, 1.5});
    all.push_back({at + " by naive on mmap", "speed_of_mmap", at, speeds(samples, at, kStencilMmap),
                   true, 0, 35});
    all.push_back({"Hanare in memory by Devito", "speed_of_devito", kStencilMemory,
                   speeds(samples, kStencilMemory, kStencilDevito), true, 2, 2.5});
    all.push_back({"ping-pong, time beyond in place", "overhead", at + "_ping_pong",
                   overheads(samples, at + "_ping_pong", at), false, 0, 0.03});
    all.push_back({"snapshots, time beyond their bytes", "overhead", at + "_snapshots",
                   overheads(samples, at + "_snapshots", at), false, 0, 0.02});
    std::erase_if(all, [](const Verdict& each) { return each.found.empty(); });
    return all;
}

std::string bound_cell(double bound, bool is_least) {
    return bound == 0 ? kNone : format("%s %g", is_least ? ">=" : "<=", bound);
}

nlohmann::json series_json(const std::vector<ProcessMoment>& series) {
    nlohmann::json json = {{"seconds", nlohmann::json::array()},
                           {"user_s", nlohmann::json::array()},
                           {"system_s", nlohmann::json::array()},
                           {"read_bytes", nlohmann::json::array()},
                           {"written_bytes", nlohmann::json::array()}};
    for (const ProcessMoment& moment : series) {
        json["seconds"].push_back(moment.seconds);
        json["user_s"].push_back(moment.user_s);
        json["system_s"].push_back(moment.system_s);
        json["read_bytes"].push_back(moment.read_bytes);
        json["written_bytes"].push_back(moment.written_bytes);
    }
    return json;
}

const StencilSample* first_of(const Samples& samples, const std::string& system) {
    const auto found = std::ranges::find_if(
        samples, [&](const StencilSample& sample) { return is_of(sample, system); });
    return found == samples.end() ? nullptr : &*found;
}

// The moment at a time, between those that were looked at.
ProcessMoment moment_at(const std::vector<ProcessMoment>& series, double seconds) {
    for (size_t i = 1; i < series.size(); ++i) {
        if (series[i].seconds < seconds) continue;
        const ProcessMoment& a = series[i - 1];
        const ProcessMoment& b = series[i];
        const double part =
            b.seconds > a.seconds ? (seconds - a.seconds) / (b.seconds - a.seconds) : 1.0;
        const auto bytes = [&](uint64_t from, uint64_t to) {
            return from + static_cast<uint64_t>(part * static_cast<double>(to - from));
        };
        return {seconds, a.user_s + part * (b.user_s - a.user_s),
                a.system_s + part * (b.system_s - a.system_s), bytes(a.read_bytes, b.read_bytes),
                bytes(a.written_bytes, b.written_bytes)};
    }
    return series.back();
}

}  // namespace

uint64_t stencil_limit_times(const std::vector<uint64_t>& times) {
    return times.size() > 1 ? times[1] : times[0];
}

std::string stencil_grid_name(uint64_t times) { return "hanare_" + std::to_string(times) + "x"; }

std::vector<StencilSystem> stencil_systems(const std::vector<std::string>& compared,
                                           const std::vector<uint64_t>& times) {
    const auto is_compared = [&](const char* name) {
        return std::ranges::count(compared, name) > 0;
    };
    const uint64_t chosen = stencil_limit_times(times);
    // The plain sweeps are always there: the others' results are theirs.
    std::vector<StencilSystem> systems = {{kStencilNaive, "plain"}};
    if (is_compared(kStencilSpatial)) systems.push_back({kStencilSpatial, "blocks"});
    if (is_compared(kStencilDevito)) systems.push_back({kStencilDevito, kStencilDevito});
    systems.push_back({kStencilMemory, "memory"});
    for (const uint64_t each : times) systems.push_back({stencil_grid_name(each), "file", each});
    systems.push_back({stencil_grid_name(chosen) + "_ping_pong", "file", chosen, true, false});
    systems.push_back({stencil_grid_name(chosen) + "_snapshots", "file", chosen, false, true});
    if (is_compared(kStencilMmap)) systems.push_back({kStencilMmap, "mapped", chosen});
    return systems;
}

std::string stencil_mismatch(const StencilSample& found, const StencilOutcome& expected,
                             bool is_early, bool is_ordered) {
    if (is_ordered) {
        const SevenResult& right = is_early ? expected.early : expected.result;
        if (found.outcome.result.digest == right.digest) return "";
        return found.system + ": its cells are not those of the plain sweeps, bit by bit";
    }
    const double difference = seven_difference(found.outcome.result, expected.result);
    if (difference <= kTolerance) return "";
    return format("%s: its cells differ from those of the plain sweeps by %.3g (allowed %.0e)",
                  found.system.c_str(), difference, kTolerance);
}

std::string stencil_table(const Samples& samples, const std::vector<StencilSystem>& systems) {
    Table table({"system", "million updates/s", "Gflop/s", "by naive", "by spatial", "by in memory",
                 "read + written", "by the least", "waiting", ""});
    for (const StencilSystem& system : systems) {
        const std::string& name = system.name;
        const auto rates =
            values(samples, name, [](const StencilSample& each) { return each.updates_per_s(); });
        if (rates.empty()) {
            table.add_row({name, kNone, kNone, kNone, kNone, kNone, kNone, kNone, kNone,
                           failure_of(samples, name)});
            continue;
        }
        const auto gigabytes = values(samples, name, [](const StencilSample& each) {
            return static_cast<double>(each.outcome.read_bytes + each.outcome.written_bytes);
        });
        const auto least = values(samples, name, bytes_of_minimum);
        const auto waits = values(samples, name, [](const StencilSample& each) {
            return each.outcome.io_wait_s / each.outcome.seconds;
        });
        const bool moves = summarize(least).median > 0;
        table.add_row({name, median_cell(rates, "%.0f", kMillion),
                       median_cell(rates, "%.1f", 1e9 / kSevenFlops),
                       median_cell(speeds(samples, name, kStencilNaive), "%.2f"),
                       median_cell(speeds(samples, name, kStencilSpatial), "%.2f"),
                       median_cell(speeds(samples, name, kStencilMemory), "%.3f"),
                       moves ? median_cell(gigabytes, "%.1f GB", 1e9) : kNone,
                       moves ? median_cell(least, "%.3f") : kNone,
                       moves && system.is_hanare() ? median_cell(waits, "%.1f %%", 0.01) : kNone,
                       first_of(samples, name)->outcome.details});
    }
    return table.text();
}

std::string stencil_verdicts(const Samples& samples, const std::vector<uint64_t>& times) {
    Table table({"floors and goals", "median", "min", "max", "floor", "goal", ""});
    for (const Verdict& each : verdicts(samples, times)) {
        const Summary summary = summarize(each.found);
        const bool is_asked = each.floor != 0 || each.goal != 0;
        table.add_row({each.text, format("%.3f", summary.median), format("%.3f", summary.min),
                       format("%.3f", summary.max), bound_cell(each.floor, each.is_least),
                       bound_cell(each.goal, each.is_least), is_asked ? each.word() : kNone});
    }
    return table.text();
}

std::string stencil_series_table(const Samples& samples,
                                 const std::vector<StencilSystem>& systems) {
    constexpr int kParts = 10;
    Table table(
        {"over time, a tenth of the run each", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"});
    for (const StencilSystem& system : systems) {
        const StencilSample* const sample = first_of(samples, system.name);
        if (sample == nullptr || sample->outcome.series.size() < 2) continue;
        const auto& series = sample->outcome.series;
        const double tenth = series.back().seconds / kParts;
        std::vector<std::string> processors = {system.name + ", processors (user + system)"};
        std::vector<std::string> moved = {system.name + ", read + written MB/s"};
        for (int part = 0; part < kParts; ++part) {
            const ProcessMoment a = moment_at(series, part * tenth);
            const ProcessMoment b = moment_at(series, (part + 1) * tenth);
            processors.push_back(format("%.1f + %.1f", (b.user_s - a.user_s) / tenth,
                                        (b.system_s - a.system_s) / tenth));
            const auto rate = [&](uint64_t from, uint64_t to) {
                return static_cast<double>(to - from) / tenth / kMillion;
            };
            moved.push_back(format("%.0f + %.0f", rate(a.read_bytes, b.read_bytes),
                                   rate(a.written_bytes, b.written_bytes)));
        }
        table.add_row(processors);
        if (series.back().read_bytes + series.back().written_bytes > 0) table.add_row(moved);
    }
    return table.text();
}

std::vector<Record> stencil_records(const Samples& samples,
                                    const std::vector<StencilSystem>& systems,
                                    const std::vector<uint64_t>& times,
                                    const nlohmann::json& params) {
    std::vector<Record> records;
    for (const StencilSystem& system : systems) {
        nlohmann::json own = params;
        own["times"] = system.times;
        const auto add = [&](const char* metric, const char* unit, std::vector<double> found) {
            if (found.empty()) return;
            records.push_back(
                {kBench, kCase, system.name, metric, unit, summarize(std::move(found)), own});
        };
        const std::string& name = system.name;
        const auto of = [&](const std::function<double(const StencilSample&)>& value) {
            return values(samples, name, value);
        };
        add("rate", "updates/s", of([](const auto& each) { return each.updates_per_s(); }));
        add("effective", "flop/s",
            of([](const auto& each) { return each.updates_per_s() * kSevenFlops; }));
        add("read", "B",
            of([](const auto& each) { return static_cast<double>(each.outcome.read_bytes); }));
        add("written", "B",
            of([](const auto& each) { return static_cast<double>(each.outcome.written_bytes); }));
        add("waiting", "s", of([](const auto& each) { return each.outcome.io_wait_s; }));
        if (const StencilSample* const first = first_of(samples, name); first != nullptr) {
            own["series"] = series_json(first->outcome.series);
            own["details"] = first->outcome.details;
            add("time", "s", of([](const auto& each) { return each.outcome.seconds; }));
        }
    }
    for (const Verdict& each : verdicts(samples, times)) {
        nlohmann::json own = params;
        if (each.floor != 0) own["floor"] = each.floor;
        if (each.goal != 0) own["goal"] = each.goal;
        if (each.floor != 0 || each.goal != 0) own["verdict"] = each.word();
        records.push_back(
            {kBench, kCase, each.system, each.metric, "1", summarize(each.found), own});
    }
    return records;
}

}  // namespace hanare::bench
