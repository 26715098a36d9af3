// SPDX-License-Identifier: Apache-2.0
#include "cli/remote_report.hpp"

#include <algorithm>
#include <optional>

#include "bench/statistics.hpp"
#include "bench/table.hpp"
#include "cli/remote_forms.hpp"
#include "cli/remote_near.hpp"

namespace hanare::cli {
namespace {

using bench::format;
using Values = std::vector<double>;

constexpr const char* kPlain = "server";
constexpr const char* kSealed = "server_sealed";
constexpr double kFloor = 0.8;     // of the raw stream, sequentially
constexpr double kGoal = 0.95;     // the same
constexpr double kOverUs = 10;     // of a fault, beyond a get by hand
constexpr double kSealing = 0.15;  // processor seconds for 10^9 bytes, both ends
constexpr double kCopies = 1.05;   // time of several servers, by a raw stream of their bytes

// The samples of a case in a network, by system and round.
class Group {
public:
    Group(const std::vector<RemoteSample>& samples, const std::string& network,
          const std::string& case_name) {
        for (const RemoteSample& sample : samples) {
            if (sample.network == network && sample.case_name == case_name) {
                own_.push_back(&sample);
            }
        }
    }
    std::vector<std::string> systems() const {
        std::vector<std::string> names;
        for (const RemoteSample* sample : own_) {
            if (std::ranges::count(names, sample->system) == 0) names.push_back(sample->system);
        }
        std::ranges::sort(names);
        // The raw socket first.
        std::ranges::stable_partition(names,
                                      [](const std::string& name) { return name == kRawSystem; });
        return names;
    }
    // By round; where it was not measured, nothing.
    Values values(const std::string& system, const std::string& metric) const {
        Values found;
        for (const RemoteSample* sample : own_) {
            const auto at = sample->metrics.find(metric);
            if (sample->system == system && at != sample->metrics.end()) {
                found.push_back(at->second);
            }
        }
        return found;
    }
    Values raw(const std::string& metric) const { return values(kRawSystem, metric); }

private:
    std::vector<const RemoteSample*> own_;
};

template <typename Combine>
Values by_round(const Values& a, const Values& b, Combine combine) {
    Values combined;
    for (size_t i = 0; i < a.size() && i < b.size(); ++i) combined.push_back(combine(a[i], b[i]));
    return combined;
}

double median(const Values& values) { return bench::summarize(values).median; }

double bytes_factor(const std::string& system) {
    for (const StoreForm& form : store_forms()) {
        if (system == form.name) return form.bytes_factor;
    }
    return 1;
}

// A write counts until the server has all of it.
const char* rate_metric(const std::string& case_name, const std::string& system) {
    return case_name == kRemoteWrite && system != kRawSystem ? "rate_with_flush" : "rate";
}

// Of the rate of a raw stream of the bytes that it writes, or reads.
Values ratios(const Group& group, const std::string& case_name, const std::string& system) {
    const double factor = case_name == kRemoteWrite ? bytes_factor(system) : 1;
    return by_round(group.values(system, rate_metric(case_name, system)), group.raw("rate"),
                    [=](double ours, double raw) { return ours * factor / raw; });
}

// What a fault takes beyond a get of a page over the raw socket.
Values overs(const Group& group, const std::string& system) {
    return by_round(group.values(system, "p50"), group.raw("get_page"),
                    [](double ours, double raw) { return ours - raw; });
}

Values processor(const Group& group, const std::string& system) {
    return by_round(group.values(system, "client_processor"),
                    group.values(system, "server_processor"),
                    [](double client, double server) { return client + server; });
}

Values extra_processor(const Group& group) {
    return by_round(processor(group, kSealed), processor(group, kPlain),
                    [](double sealed, double plain) { return sealed - plain; });
}

std::vector<std::string> distinct(const std::vector<RemoteSample>& samples,
                                  std::string RemoteSample::* member) {
    std::vector<std::string> names;
    for (const RemoteSample& sample : samples) {
        if (std::ranges::count(names, sample.*member) == 0) names.push_back(sample.*member);
    }
    return names;
}

bool is_raw(const std::string& system) { return system == kRawSystem; }

std::string or_nothing(const Values& values, const char* pattern) {
    if (values.empty()) return "-";
    return format("%.*f", std::string(pattern) == "us" ? 1 : 2, median(values));
}

void add_rate_rows(bench::Table& table, const Group& group, const std::string& case_name) {
    for (const std::string& system : group.systems()) {
        table.add_row(
            {case_name, system,
             bench::format_rate(median(group.values(system, rate_metric(case_name, system)))),
             is_raw(system) ? "-" : or_nothing(ratios(group, case_name, system), "x"),
             or_nothing(group.values(system, "client_processor"), "s"),
             or_nothing(group.values(system, "server_processor"), "s"),
             system == kSealed ? or_nothing(extra_processor(group), "s") : "-"});
    }
}

void add_latency_rows(bench::Table& table, const Group& group, const std::string& case_name) {
    for (const std::string& system : group.systems()) {
        table.add_row({case_name, system, or_nothing(group.values(system, "round_trip"), "us"),
                       or_nothing(group.values(system, is_raw(system) ? "get_page" : "p50"), "us"),
                       or_nothing(group.values(system, "time"), "us"),
                       or_nothing(group.values(system, "p99"), "us"),
                       is_raw(system) ? "-" : or_nothing(overs(group, system), "us")});
    }
}

std::string verdict(bool is_met) { return is_met ? "met" : "MISSED"; }

void add_rate_goals(bench::Table& table, const Group& group, const std::string& where,
                    const std::string& case_name) {
    if (case_name == kRemoteStrided) return;
    for (const std::string& system : group.systems()) {
        const Values found = ratios(group, case_name, system);
        if (is_raw(system) || found.empty()) continue;
        const double ratio = median(found);
        if (bytes_factor(system) != 1 && case_name == kRemoteWrite) {
            table.add_row({where, system, format("time of raw <= %.2f", kCopies),
                           format("%.2f", 1 / ratio), verdict(1 / ratio <= kCopies)});
            continue;
        }
        table.add_row({where, system, format("floor: of raw >= %.2f", kFloor),
                       format("%.2f", ratio), verdict(ratio >= kFloor)});
        table.add_row({where, system, format("of raw >= %.2f", kGoal), format("%.2f", ratio),
                       verdict(ratio >= kGoal)});
    }
    if (const Values extra = extra_processor(group); !extra.empty()) {
        table.add_row({where, kSealed, format("extra processor s/GB <= %.2f", kSealing),
                       format("%.2f", median(extra)), verdict(median(extra) <= kSealing)});
    }
}

void add_latency_goals(bench::Table& table, const Group& group, const std::string& where) {
    for (const std::string& system : group.systems()) {
        const Values found = overs(group, system);
        if (is_raw(system) || found.empty()) continue;
        table.add_row({where, system, format("beyond a get by hand <= %.0f us", kOverUs),
                       format("%.1f", median(found)), verdict(median(found) <= kOverUs)});
    }
}

struct Metric {
    const char* name;
    const char* unit;
};
constexpr Metric kMetrics[] = {{"rate", "B/s"},
                               {"rate_with_flush", "B/s"},
                               {"client_processor", "s/GB"},
                               {"server_processor", "s/GB"},
                               {"time", "us"},
                               {"p50", "us"},
                               {"p99", "us"},
                               {"round_trip", "us"},
                               {"get_page", "us"},
                               {"read", "B"},
                               {"written", "B"}};

}  // namespace

std::string remote_tables(const std::vector<RemoteSample>& samples) {
    bench::Table rates({"case", "system", "rate", "of raw", "near s/GB", "far s/GB", "extra s/GB"});
    bench::Table times(
        {"case", "system", "round trip us", "median us", "mean us", "p99 us", "beyond raw us"});
    bool has_rates = false;
    bool has_times = false;
    for (const std::string& case_name : distinct(samples, &RemoteSample::case_name)) {
        const Group group(samples, samples.front().network, case_name);
        const bool is_latency = is_remote_latency(case_name);
        (is_latency ? has_times : has_rates) = true;
        if (is_latency) {
            add_latency_rows(times, group, case_name);
        } else {
            add_rate_rows(rates, group, case_name);
        }
    }
    return (has_rates ? rates.text() : "") + (has_rates && has_times ? "\n" : "") +
           (has_times ? times.text() : "");
}

std::string remote_goals(const std::vector<RemoteSample>& samples) {
    bench::Table table({"network, case", "system", "goal", "found", ""});
    for (const std::string& network : distinct(samples, &RemoteSample::network)) {
        for (const std::string& case_name : distinct(samples, &RemoteSample::case_name)) {
            const Group group(samples, network, case_name);
            const std::string where = network + ", " + case_name;
            if (case_name == kRemoteFault) {
                add_latency_goals(table, group, where);
            } else if (!is_remote_latency(case_name)) {
                add_rate_goals(table, group, where, case_name);
            }
        }
    }
    return table.text();
}

std::vector<bench::Record> remote_records(const std::vector<RemoteSample>& samples,
                                          const nlohmann::json& common) {
    std::vector<bench::Record> records;
    for (const std::string& network : distinct(samples, &RemoteSample::network)) {
        nlohmann::json params = common;
        params["network"] = network;
        for (const std::string& case_name : distinct(samples, &RemoteSample::case_name)) {
            const Group group(samples, network, case_name);
            for (const std::string& system : group.systems()) {
                params["bytes_factor"] = bytes_factor(system);
                const auto add = [&](const char* metric, const char* unit, const Values& values) {
                    if (values.empty()) return;
                    records.push_back({"remote", case_name, system, metric, unit,
                                       bench::summarize(values), params});
                };
                for (const Metric& metric : kMetrics) {
                    add(metric.name, metric.unit, group.values(system, metric.name));
                }
                if (is_raw(system)) continue;
                if (is_remote_latency(case_name)) {
                    add("beyond_raw", "us", overs(group, system));
                } else {
                    add("ratio", "x", ratios(group, case_name, system));
                }
                if (system == kSealed) add("extra_processor", "s/GB", extra_processor(group));
            }
        }
    }
    return records;
}

}  // namespace hanare::cli
