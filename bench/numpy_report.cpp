// SPDX-License-Identifier: Apache-2.0
#include "bench/numpy_report.hpp"

#include <algorithm>
#include <set>

#include "bench/table.hpp"

namespace hanare::bench {
namespace {

constexpr const char* kBench = "numpy";
constexpr const char* kNone = "-";
constexpr double kFitsGoal = 1.02;     // times plain memory
constexpr double kImportGoal_s = 0.1;  // of the package beyond NumPy's own
constexpr double kSlower = 1.25;
constexpr double kFaster = 1 / 1.5;

enum class Ending { kLeft, kFlushed };

const NumpySample* find(const std::vector<NumpySample>& samples, const std::string& case_name,
                        const std::string& system, int round) {
    const auto found = std::ranges::find_if(samples, [&](const NumpySample& sample) {
        return sample.case_name == case_name && sample.system == system && sample.round == round &&
               sample.failure.empty();
    });
    return found == samples.end() ? nullptr : &*found;
}

double seconds_of(const NumpySample& sample, Ending ending) {
    return sample.seconds + (ending == Ending::kFlushed ? sample.flush_seconds : 0);
}

std::vector<double> times(const std::vector<NumpySample>& samples, const std::string& case_name,
                          const std::string& system, Ending ending = Ending::kLeft) {
    std::vector<double> values;
    for (const NumpySample& sample : samples) {
        if (sample.case_name != case_name || sample.system != system) continue;
        if (sample.failure.empty()) values.push_back(seconds_of(sample, ending));
    }
    return values;
}

// Of runs of the same round; the plain one has nothing to flush.
std::vector<double> ratios(const std::vector<NumpySample>& samples, const std::string& case_name,
                           const std::string& system, const std::string& other, Ending ending) {
    std::vector<double> values;
    for (const NumpySample& sample : samples) {
        if (sample.case_name != case_name || sample.system != system) continue;
        const NumpySample* const beside = find(samples, case_name, other, sample.round);
        if (!sample.failure.empty() || beside == nullptr) continue;
        values.push_back(seconds_of(sample, ending) / seconds_of(*beside, ending));
    }
    return values;
}

std::string failure_of(const std::vector<NumpySample>& samples, const std::string& case_name,
                       const std::string& system) {
    for (const NumpySample& sample : samples) {
        if (sample.case_name == case_name && sample.system == system && !sample.failure.empty()) {
            return sample.failure;
        }
    }
    return kNone;
}

std::string time_cell(const std::vector<NumpySample>& samples, const std::string& case_name,
                      const std::string& system) {
    const std::vector<double> values = times(samples, case_name, system);
    if (values.empty()) return failure_of(samples, case_name, system);
    return format_seconds(summarize(values).median);
}

// "0.52 (0.61)": in brackets with the final flush.
std::string ratio_cell(const std::vector<NumpySample>& samples, const std::string& case_name,
                       const std::string& system, const std::string& other) {
    const auto left = ratios(samples, case_name, system, other, Ending::kLeft);
    if (left.empty()) return kNone;
    const auto flushed = ratios(samples, case_name, system, other, Ending::kFlushed);
    return format("%.2f (%.2f)", summarize(left).median, summarize(flushed).median);
}

std::string verdict_of(const std::vector<NumpySample>& samples, const NumpyCase& which) {
    std::vector<std::string> missed;
    const auto check = [&](const char* other, double most, const char* what) {
        if (most == 0) return;
        const auto found = ratios(samples, which.name, kNumpyHanare, other, Ending::kLeft);
        if (!found.empty() && summarize(found).median > most) missed.emplace_back(what);
    };
    check(kNumpyMemmap, which.memmap_floor, "floor missed");
    if (missed.empty()) check(kNumpyMemmap, which.memmap_goal, "goal (memmap) missed");
    check(kNumpyPlain, which.plain_goal, "goal (plain) missed");
    const bool has_run = !times(samples, which.name, kNumpyHanare).empty();
    if (missed.empty()) return has_run ? "met" : kNone;
    std::string text;
    for (const std::string& each : missed) text += (text.empty() ? "" : ", ") + each;
    return text;
}

// Whose result is right.
const NumpySample* reference_of(const std::vector<NumpySample>& samples,
                                const std::string& case_name) {
    const NumpySample* first = nullptr;
    for (const NumpySample& sample : samples) {
        if (sample.case_name != case_name || !sample.failure.empty()) continue;
        if (sample.system == kNumpyPlain) return &sample;
        if (first == nullptr) first = &sample;
    }
    return first;
}

std::vector<double> fits_ratios(const std::vector<NumpySample>& samples) {
    std::vector<double> medians;
    for (const NumpyCase& which : numpy_cases()) {
        const auto found = ratios(samples, which.name, kNumpyFits, kNumpyPlain, Ending::kLeft);
        if (!found.empty()) medians.push_back(summarize(found).median);
    }
    return medians;
}

std::vector<double> import_seconds(const std::vector<NumpySample>& samples) {
    std::vector<double> values;
    for (const NumpySample& sample : samples) {
        if (sample.failure.empty()) values.push_back(sample.import_seconds);
    }
    return values;
}

}  // namespace

const std::vector<NumpyCase>& numpy_cases() {
    static const std::vector<NumpyCase> cases = {
        {"sum", "a.sum()", kSlower, 0, 0},
        {"update", "a *= 1.5; a += 0.25", kSlower, kFaster, 0},
        {"matmul", "np.matmul(a, b, out=c)", kSlower, 0, 1.5},
        {"sort", "a.sort()", kSlower, kFaster, 0},
        {"fft_rows", "np.fft.fft(a, axis=1, out=b)", kSlower, kFaster, 0},
        {"fft_columns", "np.fft.fft(a, axis=0, out=b)", kSlower, kFaster, 0},
        {"gather", "a[places], at random", kSlower, 0, 0},
        {"scatter", "a[places] += 1, at random", kSlower, 0, 0},
    };
    return cases;
}

std::string numpy_case_names() {
    std::string names;
    for (const NumpyCase& which : numpy_cases()) {
        names += (names.empty() ? "" : ",") + std::string(which.name);
    }
    return names;
}

std::optional<NumpySample> parse_numpy_sample(const std::string& output) {
    const size_t end = output.find_last_not_of('\n');
    if (end == std::string::npos) return std::nullopt;
    const size_t begin = output.find_last_of('\n', end) + 1;  // 0 where there is no other line
    const auto said = nlohmann::json::parse(output.substr(begin, end + 1 - begin), nullptr, false);
    try {
        NumpySample sample;
        sample.seconds = said.at("seconds");
        sample.flush_seconds = said.at("flush_seconds");
        sample.import_seconds = said.at("import_seconds");
        sample.digest = said.at("digest");
        return sample;
    } catch (const nlohmann::json::exception&) {
        return std::nullopt;
    }
}

std::string numpy_table(const std::vector<NumpySample>& samples) {
    Table table({"case", "plain", "memmap", "hanare", "by memmap", "by plain", "all fits, by plain",
                 "floors, goals", ""});
    for (const NumpyCase& which : numpy_cases()) {
        const std::string name = which.name;
        const bool has_run = std::ranges::any_of(
            samples, [&](const NumpySample& sample) { return sample.case_name == name; });
        if (!has_run) continue;
        table.add_row({name, time_cell(samples, name, kNumpyPlain),
                       time_cell(samples, name, kNumpyMemmap),
                       time_cell(samples, name, kNumpyHanare),
                       ratio_cell(samples, name, kNumpyHanare, kNumpyMemmap),
                       ratio_cell(samples, name, kNumpyHanare, kNumpyPlain),
                       ratio_cell(samples, name, kNumpyFits, kNumpyPlain),
                       verdict_of(samples, which), which.text});
    }
    return table.text();
}

std::string numpy_summary(const std::vector<NumpySample>& samples) {
    std::string text;
    if (const auto fits = fits_ratios(samples); !fits.empty()) {
        const Summary summary = summarize(fits);
        text += format("where all fits: %.3f times plain, the median of the cases (goal %g: %s)\n",
                       summary.median, kFitsGoal, summary.median <= kFitsGoal ? "met" : "missed");
    }
    if (const auto imports = import_seconds(samples); !imports.empty()) {
        const double median = summarize(imports).median;
        text += format("import hanare after NumPy: %s (goal %s: %s)\n",
                       format_seconds(median).c_str(), format_seconds(kImportGoal_s).c_str(),
                       median <= kImportGoal_s ? "met" : "missed");
    }
    return text;
}

std::vector<Record> numpy_records(const std::vector<NumpySample>& samples,
                                  const nlohmann::json& params) {
    std::vector<Record> records;
    const auto add = [&](const std::string& case_name, const char* system, const char* metric,
                         const char* unit, std::vector<double> values) {
        if (values.empty()) return;
        records.push_back(
            {kBench, case_name, system, metric, unit, summarize(std::move(values)), params});
    };
    for (const NumpyCase& which : numpy_cases()) {
        for (const char* system : {kNumpyPlain, kNumpyMemmap, kNumpyHanare, kNumpyFits}) {
            add(which.name, system, "time", "s", times(samples, which.name, system));
            add(which.name, system, "time_with_flush", "s",
                times(samples, which.name, system, Ending::kFlushed));
        }
        add(which.name, kNumpyHanare, "time_of_memmap", "1",
            ratios(samples, which.name, kNumpyHanare, kNumpyMemmap, Ending::kLeft));
        add(which.name, kNumpyHanare, "time_of_plain", "1",
            ratios(samples, which.name, kNumpyHanare, kNumpyPlain, Ending::kLeft));
        add(which.name, kNumpyFits, "time_of_plain", "1",
            ratios(samples, which.name, kNumpyFits, kNumpyPlain, Ending::kLeft));
    }
    add("import", kNumpyHanare, "time", "s", import_seconds(samples));
    return records;
}

std::vector<std::string> numpy_differences(const std::vector<NumpySample>& samples) {
    std::set<std::string> found;
    for (const NumpySample& sample : samples) {
        const NumpySample* const right = reference_of(samples, sample.case_name);
        if (!sample.failure.empty() || right == nullptr || right->digest == sample.digest) continue;
        found.insert(sample.case_name + ": the result of " + sample.system + " is not that of " +
                     right->system);
    }
    return {found.begin(), found.end()};
}

}  // namespace hanare::bench
