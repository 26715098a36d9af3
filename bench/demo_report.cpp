// SPDX-License-Identifier: Apache-2.0
#include "bench/demo_report.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/units.hpp"
#include "bench/table.hpp"

namespace hanare::bench {
namespace {

constexpr double kAlike = 1.03;  // runs that differ by less are called equally fast

const DemoRun* find(const std::vector<DemoRuns>& systems, const std::string& name) {
    for (const DemoRuns& runs : systems) {
        if (!runs.empty() && runs.front().system == name) return &median_run(runs);
    }
    return nullptr;
}

std::optional<double> device_fraction(const DemoRun& run,
                                      const std::optional<DeviceBandwidth>& device) {
    if (!device || !run.moved_known || run.read_bytes + run.written_bytes == 0) return std::nullopt;
    return device->seconds_for(run.read_bytes, run.written_bytes) / run.times.total();
}

// "3.1x faster than mmap", "1.2x slower than mmap", "as fast as mmap".
std::string compared(const DemoRun& hanare, const DemoRun& peer) {
    const double ratio = peer.times.total() / hanare.times.total();
    if (ratio < kAlike && ratio > 1 / kAlike) return "as fast as " + peer.system;
    if (ratio > 1) return format_ratio(ratio) + " faster than " + peer.system;
    return format_ratio(1 / ratio) + " slower than " + peer.system;
}

std::string joined(const std::vector<std::string>& parts) {
    std::string text;
    for (size_t i = 0; i < parts.size(); ++i) {
        if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
        text += parts[i];
    }
    return text;
}

void add_record(std::vector<Record>& records, const DemoRuns& runs, const std::string& name,
                const char* metric, const char* unit, const nlohmann::json& params,
                const std::function<double(const DemoRun&)>& value) {
    std::vector<double> values;
    for (const DemoRun& run : runs) values.push_back(value(run));
    nlohmann::json all = params;
    all["limited"] = runs.front().limited;
    records.push_back(
        {"demo", name, runs.front().system, metric, unit, summarize(std::move(values)), all});
}

}  // namespace

const DemoRun& median_run(const DemoRuns& runs) {
    HANARE_ASSERT(!runs.empty());
    std::vector<const DemoRun*> order;
    for (const DemoRun& run : runs) order.push_back(&run);
    std::sort(order.begin(), order.end(), [](const DemoRun* left, const DemoRun* right) {
        return left->times.total() < right->times.total();
    });
    return *order[(order.size() - 1) / 2];
}

std::string demo_table(const std::vector<DemoRuns>& systems,
                       const std::optional<DeviceBandwidth>& device) {
    Table table({"system", "write a", "write x", "mul a*x", "total", "read", "written", "faults",
                 "peak RSS", "of device", "checked"});
    for (const DemoRuns& runs : systems) {
        const DemoRun& run = median_run(runs);
        const auto fraction = device_fraction(run, device);
        table.add_row({run.system, format_seconds(run.times.seconds[0]),
                       format_seconds(run.times.seconds[1]), format_seconds(run.times.seconds[2]),
                       format_seconds(run.times.total()),
                       run.moved_known ? format_size(run.read_bytes) : "-",
                       run.moved_known ? format_size(run.written_bytes) : "-",
                       format_count(run.faults), format_size(run.peak_resident_bytes),
                       fraction ? format("%.0f %%", *fraction * 100) : "-", "yes"});
    }
    return table.text();
}

std::string demo_sentence(const std::vector<DemoRuns>& systems, double memory_ratio) {
    const DemoRun* hanare = find(systems, "hanare");
    if (hanare == nullptr) return "Hanare was not among the systems that ran.";
    std::string text = "Hanare finished a matrix of " + format("%.1f", memory_ratio) +
                       " times its memory in " + format_seconds(hanare->times.total());
    if (const DemoRun* plain = find(systems, "plain")) {
        text += ", " + format_ratio(hanare->times.total() / plain->times.total()) +
                " the time of plain memory that holds all of it";
    }
    std::vector<std::string> peers;
    for (const char* name : {"mmap", "mmap-seq", "swap"}) {
        if (const DemoRun* peer = find(systems, name)) peers.push_back(compared(*hanare, *peer));
    }
    if (peers.empty()) return text + "; no system under the same limit ran beside it.";
    text += "; under the same limit it was " + joined(peers);
    return text + (hanare->limited ? "." : " (Hanare by its own budget, without a cgroup).");
}

std::vector<Record> demo_records(const std::vector<DemoRuns>& systems,
                                 const std::optional<DeviceBandwidth>& device,
                                 const nlohmann::json& params) {
    std::vector<Record> records;
    for (const DemoRuns& runs : systems) {
        const auto add = [&](const std::string& name, const char* metric, const char* unit,
                             const std::function<double(const DemoRun&)>& value) {
            add_record(records, runs, name, metric, unit, params, value);
        };
        for (int phase = 0; phase < kMatvPhases; ++phase) {
            add(matv_phase_name(static_cast<MatvPhase>(phase)), "time", "s",
                [phase](const DemoRun& run) { return run.times.seconds[phase]; });
        }
        add("total", "time", "s", [](const DemoRun& run) { return run.times.total(); });
        add("total", "faults", "1",
            [](const DemoRun& run) { return static_cast<double>(run.faults); });
        add("total", "major_faults", "1",
            [](const DemoRun& run) { return static_cast<double>(run.major_faults); });
        add("total", "peak_resident", "B",
            [](const DemoRun& run) { return static_cast<double>(run.peak_resident_bytes); });
        if (runs.front().limited) {
            add("total", "cgroup_peak", "B",
                [](const DemoRun& run) { return static_cast<double>(run.cgroup_peak_bytes); });
        }
        if (runs.front().moved_known) {
            add("total", "read", "B",
                [](const DemoRun& run) { return static_cast<double>(run.read_bytes); });
            add("total", "written", "B",
                [](const DemoRun& run) { return static_cast<double>(run.written_bytes); });
        }
        if (device_fraction(runs.front(), device)) {
            add("total", "device_fraction", "1",
                [&device](const DemoRun& run) { return device_fraction(run, device).value_or(0); });
        }
    }
    return records;
}

}  // namespace hanare::bench
