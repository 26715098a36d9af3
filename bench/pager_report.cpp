// SPDX-License-Identifier: Apache-2.0
#include "bench/pager_report.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "bench/table.hpp"

namespace hanare::bench {
namespace {

constexpr const char* kNone = "-";
constexpr const char* kDeviceSystem = "device_pool";

struct RowKey {
    PagerCase which;
    int threads;
    std::string system;

    auto operator<=>(const RowKey&) const = default;
};

// The rows by case and threads; systems in the order in which they were first seen.
std::vector<RowKey> rows_of(const PagerSamples& samples) {
    std::vector<std::string> systems;
    std::vector<RowKey> rows;
    for (const PagerSample& sample : samples) {
        const RowKey key = {sample.which, sample.threads, sample.system};
        if (std::find(rows.begin(), rows.end(), key) == rows.end()) rows.push_back(key);
        if (std::find(systems.begin(), systems.end(), sample.system) == systems.end()) {
            systems.push_back(sample.system);
        }
    }
    const auto place = [&systems](const std::string& system) {
        return std::find(systems.begin(), systems.end(), system) - systems.begin();
    };
    std::sort(rows.begin(), rows.end(), [&place](const RowKey& left, const RowKey& right) {
        return std::tuple(left.which, left.threads, place(left.system)) <
               std::tuple(right.which, right.threads, place(right.system));
    });
    return rows;
}

// By round, where it was measured.
std::map<int, double> values_of(const PagerSamples& samples, const RowKey& row,
                                const std::string& metric) {
    std::map<int, double> values;
    for (const PagerSample& sample : samples) {
        if (RowKey{sample.which, sample.threads, sample.system} != row) continue;
        const auto found = sample.metrics.find(metric);
        if (found != sample.metrics.end()) values[sample.round] = found->second;
    }
    return values;
}

std::vector<double> without_rounds(const std::map<int, double>& values) {
    std::vector<double> list;
    for (const auto& [round, value] : values) list.push_back(value);
    return list;
}

// Hanare by the other system, in the rounds that have both.
std::vector<double> ratios(const PagerSamples& samples, const RowKey& row,
                           const std::string& metric) {
    const auto hanare = values_of(samples, {row.which, row.threads, kHanareSystem}, metric);
    std::vector<double> list;
    for (const auto& [round, value] : values_of(samples, row, metric)) {
        const auto found = hanare.find(round);
        if (found != hanare.end() && value > 0) list.push_back(found->second / value);
    }
    return list;
}

std::string format_us(double us) { return format(us < 100 ? "%.1f us" : "%.0f us", us); }
std::string bare_us(double us) { return format(us < 100 ? "%.1f" : "%.0f", us); }
std::string format_part(double part) { return format("%.2f", part); }

// Least and most, in the unit of the median's text.
std::string rate_spread(const Summary& summary) {
    if (summary.median < 1e9) return format("%.0f .. %.0f", summary.min / 1e6, summary.max / 1e6);
    return format("%.2f .. %.2f", summary.min / 1e9, summary.max / 1e9);
}
std::string us_spread(const Summary& summary) {
    const char* const pattern = summary.median < 100 ? "%.1f .. %.1f" : "%.0f .. %.0f";
    return format(pattern, summary.min, summary.max);
}
std::string part_spread(const Summary& summary) {
    return format("%.2f .. %.2f", summary.min, summary.max);
}

struct MetricRow {
    const char* metric;
    const char* label;  // appended to the case's name
    std::string (*text)(double);
    std::string (*spread)(const Summary&);
};

// What the table shows of a case, a line each.
std::vector<MetricRow> shown_metrics(PagerCase which) {
    if (which == PagerCase::kMixed) {
        return {{"rate", ": stream", format_rate, rate_spread},
                {"stream_kept", ": kept", format_part, part_spread},
                {"time", ": random", format_us, us_spread}};
    }
    if (is_random(which)) return {{"time", "", format_us, us_spread}};
    return {{"rate", "", format_rate, rate_spread}};
}

std::string median_text(const PagerSamples& samples, const RowKey& row, const char* metric,
                        std::string (*text)(double)) {
    const auto values = values_of(samples, row, metric);
    return values.empty() ? kNone : text(summarize(without_rounds(values)).median);
}

void add_table_row(Table& table, const PagerSamples& samples, const RowKey& row,
                   const MetricRow& shown) {
    const auto values = values_of(samples, row, shown.metric);
    if (values.empty()) return;
    const Summary summary = summarize(without_rounds(values));
    const auto complete = values_of(samples, row, "complete");
    const bool stopped = !complete.empty() && summarize(without_rounds(complete)).min == 0;
    const std::string spread = shown.spread(summary);
    std::string flush = kNone;
    std::string quantiles = kNone;
    std::string ratio = kNone;
    if (std::string(shown.metric) == "rate") {
        flush = median_text(samples, row, "rate_with_flush", format_rate);
    }
    if (std::string(shown.metric) == "time" && !values_of(samples, row, "p50").empty()) {
        quantiles = median_text(samples, row, "p50", bare_us) + ", " +
                    median_text(samples, row, "p99", bare_us);
    }
    const auto by_system = ratios(samples, row, shown.metric);
    const bool is_compared = row.system != kHanareSystem && shown.text != format_part;
    if (is_compared && !by_system.empty()) {
        ratio = format("%.2f", summarize(by_system).median);
    }
    table.add_row({std::string(pager_case_name(row.which)) + shown.label,
                   row.which == PagerCase::kMixed ? "1+1" : std::to_string(row.threads), row.system,
                   shown.text(summary.median) + (stopped ? "*" : ""), spread, flush, quantiles,
                   ratio});
}

// The project's floors and goals, for ratios of Hanare to a system in one run.
struct Goal {
    PagerCase which;
    const char* metric;
    const char* system;  // null: the metric itself
    const char* text;
    double floor;
    double goal;
    bool less_is_better;
};
constexpr Goal kGoals[] = {
    {PagerCase::kSeqWrite, "rate", "mmap", "rate / mmap", 2.5, 3.5, false},
    {PagerCase::kSeqReadCold, "rate", "mmap_sequential", "rate / mmap_sequential", 1.1, 1.5, false},
    {PagerCase::kSeqReadCold, "rate", kDeviceSystem, "rate / raw device, equal memory", 0.8, 0.95,
     false},
    {PagerCase::kTriad, "rate", "mmap", "rate / mmap", 1.5, 2.5, false},
    {PagerCase::kTriad, "rate", "swap", "rate / swap", 6, 12, false},
    {PagerCase::kRandomClean, "time", "swap", "time / swap", 1.0, 0.75, true},
    {PagerCase::kRandomDirty, "time", "swap", "time / swap", 1.0, 0.75, true},
    {PagerCase::kMixed, "stream_kept", nullptr, "stream kept", 0.6, 0.85, false},
};

// Of the other engines' streams ("hanare:ENGINE") to those of Hanare's own choice.
constexpr Goal kEngineGoal = {PagerCase::kSeqWrite, "rate", nullptr, "", 0.5, 0.8, false};

bool is_stream(PagerCase which) { return !is_random(which) && which != PagerCase::kMixed; }
bool is_engine(const std::string& system) {
    return system.starts_with(std::string(kHanareSystem) + ":");
}

// Empty when it was not measured.
std::vector<double> values_for(const PagerSamples& samples, const Goal& goal, int threads) {
    const std::string system = goal.system != nullptr ? goal.system : kHanareSystem;
    const RowKey row = {goal.which, threads, system};
    return goal.system != nullptr ? ratios(samples, row, goal.metric)
                                  : without_rounds(values_of(samples, row, goal.metric));
}

// The part of a case's transfers that it need not make when all of memory holds what is still to be
// written; nullopt where the raw device is not measured with the same transfers.
std::optional<double> spared_part(PagerCase which, double local_ratio) {
    switch (which) {
        case PagerCase::kSeqWrite: return local_ratio;
        case PagerCase::kSeqReadCold: return 0;
        case PagerCase::kTriad: return local_ratio * 3 / 4;  // four transfers, and three arrays
        default: return std::nullopt;
    }
}

// What the ratio would be if Hanare kept the device busy all the time, as raw transfers do.
std::vector<double> allowed_by_device(const PagerSamples& samples, const Goal& goal, int threads,
                                      double local_ratio) {
    const std::optional<double> spared = spared_part(goal.which, local_ratio);
    if (goal.system == nullptr || !spared) return {};
    const auto device = values_of(samples, {goal.which, threads, kDeviceSystem}, goal.metric);
    std::vector<double> list;
    for (const auto& [round, value] :
         values_of(samples, {goal.which, threads, goal.system}, goal.metric)) {
        const auto found = device.find(round);
        if (found != device.end() && value > 0) {
            list.push_back(found->second / (1 - *spared) / value);
        }
    }
    return list;
}

const char* verdict(const Goal& goal, double value) {
    const auto reaches = [&](double bound) {
        return goal.less_is_better ? value <= bound : value >= bound;
    };
    return reaches(goal.goal) ? "met" : reaches(goal.floor) ? "floor" : "missed";
}

const char* unit_of(const std::string& metric) {
    static const std::map<std::string, const char*> kUnits = {
        {"rate", "B/s"},         {"rate_with_flush", "B/s"},
        {"stream_alone", "B/s"}, {"time", "us"},
        {"p50", "us"},           {"p99", "us"},
        {"read", "B"},           {"written", "B"}};
    if (metric.ends_with("_bytes")) return "B";
    const auto found = kUnits.find(metric);
    return found != kUnits.end() ? found->second : "1";
}

}  // namespace

std::string pager_table(const PagerSamples& samples) {
    Table table({"case", "threads", "system", "median", "min .. max", "with flush", "p50, p99",
                 "hanare/it"});
    for (const RowKey& row : rows_of(samples)) {
        for (const MetricRow& shown : shown_metrics(row.which)) {
            add_table_row(table, samples, row, shown);
        }
    }
    return table.text();
}

std::string pager_goals(const PagerSamples& samples, double local_ratio) {
    Table table({"case", "threads", "what", "median", "min .. max", "device allows", "floor",
                 "goal", "verdict"});
    std::vector<int> thread_counts;
    for (const PagerSample& sample : samples) thread_counts.push_back(sample.threads);
    std::sort(thread_counts.begin(), thread_counts.end());
    thread_counts.erase(std::unique(thread_counts.begin(), thread_counts.end()),
                        thread_counts.end());
    const auto add = [&table](const char* name, const std::string& threads, const std::string& what,
                              const Goal& goal, const std::vector<double>& values,
                              const std::vector<double>& allowed = {}) {
        const Summary summary = summarize(values);
        const bool known = !values.empty();
        table.add_row({name, threads, what, known ? format("%.2f", summary.median) : kNone,
                       known ? part_spread(summary) : kNone,
                       allowed.empty() ? kNone : format("%.2f", summarize(allowed).median),
                       format("%g", goal.floor), format("%g", goal.goal),
                       known ? verdict(goal, summary.median) : "not measured"});
    };
    for (const Goal& goal : kGoals) {
        bool any = false;
        for (const int threads : thread_counts) {
            const auto values = values_for(samples, goal, threads);
            if (values.empty()) continue;
            any = true;
            add(pager_case_name(goal.which), std::to_string(threads), goal.text, goal, values,
                allowed_by_device(samples, goal, threads, local_ratio));
        }
        if (!any) add(pager_case_name(goal.which), kNone, goal.text, goal, {});
    }
    for (const RowKey& row : rows_of(samples)) {
        if (!is_stream(row.which) || !is_engine(row.system)) continue;
        auto values = ratios(samples, row, kEngineGoal.metric);
        for (double& value : values) value = 1 / value;
        add(pager_case_name(row.which), std::to_string(row.threads),
            "rate of " + row.system + " / rate", kEngineGoal, values);
    }
    return table.text();
}

std::vector<Record> pager_records(const PagerSamples& samples, const nlohmann::json& params) {
    std::vector<Record> records;
    for (const RowKey& row : rows_of(samples)) {
        std::vector<std::string> metrics;
        for (const PagerSample& sample : samples) {
            if (RowKey{sample.which, sample.threads, sample.system} != row) continue;
            for (const auto& [metric, value] : sample.metrics) {
                if (std::find(metrics.begin(), metrics.end(), metric) == metrics.end()) {
                    metrics.push_back(metric);
                }
            }
        }
        const auto add = [&](const std::string& metric, const std::vector<double>& values) {
            nlohmann::json all = params;
            all["threads"] = row.threads;
            all["values"] = values;
            if (is_engine(row.system)) {
                all["engine"] = row.system.substr(std::string(kHanareSystem).size() + 1);
            }
            if (metric == "rate_with_flush") all["flush"] = true;
            records.push_back({"pager", pager_case_name(row.which), row.system, metric,
                               unit_of(metric), summarize(values), all});
        };
        for (const std::string& metric : metrics) {
            add(metric, without_rounds(values_of(samples, row, metric)));
            if (row.system == kHanareSystem || (metric != "rate" && metric != "time")) continue;
            const auto by_system = ratios(samples, row, metric);
            if (!by_system.empty()) add("hanare_" + metric + "_ratio", by_system);
        }
    }
    return records;
}

}  // namespace hanare::bench
