// SPDX-License-Identifier: Apache-2.0
#include "bench/dlm_sweep.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "base/units.hpp"
#include "bench/statistics.hpp"
#include "bench/table.hpp"

namespace hanare::bench {
namespace {

constexpr const char* kBench = "dlm";

// The paper's times with DLM pages of 1 MiB on 10 Gbit/s Ethernet, by those with all in local
// memory: of Himeno (L) Table 8(a); of STREAM's Triad section 5.1.3.
struct PaperPoint {
    const char* program;
    double percent;
    double ratio;
};
constexpr PaperPoint kPaperPoints[] = {
    {"himeno", 86, 2.3}, {"himeno", 82, 2.7}, {"himeno", 65, 3.7},
    {"himeno", 54, 4.5}, {"himeno", 43, 4.6}, {"himeno", 32, 4.8},
    {"himeno", 21, 4.9}, {"himeno", 10, 5.0}, {"stream", 8, 7.9},
};

std::string paper_cell(const std::string& program, double percent) {
    const PaperPoint* nearest = nullptr;
    for (const PaperPoint& point : kPaperPoints) {
        if (program != point.program) continue;
        const double distance = std::fabs(point.percent - percent);
        if (nearest == nullptr || distance < std::fabs(nearest->percent - percent)) {
            nearest = &point;
        }
    }
    constexpr double kSame = 5;  // percent of the data
    if (nearest == nullptr || std::fabs(nearest->percent - percent) > kSame) return "-";
    return format("%.1fx (%g %%)", nearest->ratio, nearest->percent);
}

constexpr size_t kCellMax = 12;  // longer failures are told below

// Everything but the round.
DlmPoint case_of(DlmPoint point) {
    point.round = 0;
    return point;
}

const DlmRun* plain_of(const std::vector<DlmRun>& runs, const DlmPoint& point) {
    const auto found = std::ranges::find_if(runs, [&](const DlmRun& run) {
        return run.point.system == kDlmPlain && run.point.program == point.program &&
               run.point.size == point.size && run.point.round == point.round &&
               run.failure.empty();
    });
    return found == runs.end() ? nullptr : &*found;
}

enum class Ending { kLeft, kFlushed };

// Times by the plain ones of the same rounds, which write nothing out.
std::vector<double> ratios(const std::vector<DlmRun>& runs, const DlmPoint& which, Ending ending) {
    std::vector<double> all;
    for (const DlmRun& run : runs) {
        if (case_of(run.point) != which || !run.failure.empty()) continue;
        const bool flushed = ending == Ending::kFlushed;
        if (flushed && run.flush_seconds < 0) continue;
        const double seconds = run.seconds + (flushed ? run.flush_seconds : 0);
        const DlmRun* const plain = plain_of(runs, run.point);
        if (plain != nullptr) all.push_back(seconds / plain->seconds);
    }
    return all;
}

std::string cell(const std::vector<DlmRun>& runs, const DlmPoint& which) {
    const std::vector<double> all = ratios(runs, which, Ending::kLeft);
    const std::vector<double> flushed = ratios(runs, which, Ending::kFlushed);
    if (!all.empty()) {
        const std::string ratio = format_ratio(summarize(all).median);
        if (flushed.empty()) return ratio;
        return ratio + " (" + format_ratio(summarize(flushed).median) + ")";
    }
    for (const DlmRun& run : runs) {
        if (case_of(run.point) != which || run.failure.empty()) continue;
        return run.failure.size() <= kCellMax ? run.failure : "failed";
    }
    return "-";
}

}  // namespace

std::string dlm_block_text(const DlmPoint& point) {
    return point.block_bytes == 0 ? "auto" : format_size(point.block_bytes);
}

namespace {

std::string column_of(const DlmPoint& point) {
    if (point.store.empty()) return point.system;
    return point.system + ", " + point.store + ", " + dlm_block_text(point);
}

// In the order in which they were first run.
template <typename T, typename Key>
std::vector<T> distinct(const std::vector<DlmRun>& runs, Key key) {
    std::vector<T> all;
    for (const DlmRun& run : runs) {
        T next = key(run.point);
        if (std::ranges::find(all, next) == all.end()) all.push_back(std::move(next));
    }
    return all;
}

std::string table_of(const std::vector<DlmRun>& runs) {
    std::vector<DlmRun> limited;
    std::vector<double> plain_seconds;
    std::string plain_failure;
    for (const DlmRun& run : runs) {
        if (run.point.system != kDlmPlain) {
            limited.push_back(run);
        } else if (run.failure.empty()) {
            plain_seconds.push_back(run.seconds);
        } else {
            plain_failure = run.failure;
        }
    }
    const DlmPoint& first = runs.front().point;
    std::string title = "\n" + first.program + " " + first.size;
    if (plain_seconds.empty()) return title + ": " + plain_failure + "\n";
    const Summary plain = summarize(plain_seconds);
    title += ": plain " + format_seconds(plain.median);
    if (plain_seconds.size() > 1) {
        title += format(" (%.0f %% between runs)", 100 * (plain.max - plain.min) / plain.median);
    }
    title += "\n";
    // A column's point but for the local part.
    const auto columns = distinct<DlmPoint>(limited, [](DlmPoint point) {
        point.local_percent = 0;
        return case_of(point);
    });
    auto percents =
        distinct<double>(limited, [](const DlmPoint& point) { return point.local_percent; });
    std::ranges::sort(percents, std::greater<>());
    std::vector<std::string> header = {"local"};
    for (const DlmPoint& column : columns) header.push_back(column_of(column));
    header.emplace_back("paper");
    Table table(header);
    for (const double percent : percents) {
        std::vector<std::string> row = {format("%g %%", percent)};
        for (DlmPoint point : columns) {
            point.local_percent = percent;
            row.push_back(cell(runs, point));
        }
        row.push_back(paper_cell(first.program, percent));
        table.add_row(std::move(row));
    }
    return title + table.text();
}

std::vector<DlmRun> runs_of(const std::vector<DlmRun>& runs, const std::string& program,
                            const std::string& size) {
    std::vector<DlmRun> own;
    std::ranges::copy_if(runs, std::back_inserter(own), [&](const DlmRun& run) {
        return run.point.program == program && run.point.size == size;
    });
    return own;
}

using Title = std::pair<std::string, std::string>;

std::vector<Title> titles(const std::vector<DlmRun>& runs) {
    return distinct<Title>(runs,
                           [](const DlmPoint& point) { return Title{point.program, point.size}; });
}

}  // namespace

std::optional<DlmResult> parse_dlm_result(const std::string& output) {
    constexpr std::string_view kMark = "result: ";
    const size_t at = output.rfind(kMark);
    if (at == std::string::npos || (at != 0 && output[at - 1] != '\n')) return std::nullopt;
    std::istringstream words(output.substr(at + kMark.size()));
    std::map<std::string, std::string> said;
    for (std::string word; words >> word;) {
        const size_t equals = word.find('=');
        if (equals != std::string::npos) said[word.substr(0, equals)] = word.substr(equals + 1);
    }
    DlmResult result;
    result.seconds = std::strtod(said["seconds"].c_str(), nullptr);
    result.bytes = std::strtoull(said["bytes"].c_str(), nullptr, 10);
    result.is_verified = said["verified"] == "yes";
    result.digest = said["digest"];
    if (said.contains("flush_seconds")) {
        result.flush_seconds = std::strtod(said["flush_seconds"].c_str(), nullptr);
    }
    if (!(result.seconds > 0) || result.bytes == 0) return std::nullopt;
    return result;
}

std::string dlm_tables(const std::vector<DlmRun>& runs) {
    std::string text;
    for (const auto& [program, size] : titles(runs)) text += table_of(runs_of(runs, program, size));
    return text;
}

std::vector<Record> dlm_records(const std::vector<DlmRun>& runs) {
    std::vector<Record> records;
    const auto points = distinct<DlmPoint>(runs, case_of);
    for (const DlmPoint& point : points) {
        std::vector<double> seconds;
        std::vector<double> whole;
        for (const DlmRun& run : runs) {
            if (case_of(run.point) != point || !run.failure.empty()) continue;
            seconds.push_back(run.seconds);
            whole.push_back(run.whole_seconds);
        }
        const nlohmann::json params = {{"local_ratio", point.local_percent / 100},
                                       {"block_bytes", point.block_bytes},
                                       {"store", point.store}};
        const std::string name = point.program + "_" + point.size;
        const auto add = [&](const char* metric, const char* unit, std::vector<double> values) {
            if (values.empty()) return;
            records.push_back(
                {kBench, name, point.system, metric, unit, summarize(std::move(values)), params});
        };
        add("time", "s", seconds);
        add("whole_time", "s", whole);
        if (point.system == kDlmPlain) continue;
        add("time_of_plain", "", ratios(runs, point, Ending::kLeft));
        add("flushed_time_of_plain", "", ratios(runs, point, Ending::kFlushed));
    }
    return records;
}

std::vector<std::string> dlm_failures(const std::vector<DlmRun>& runs) {
    std::set<std::string> found;
    for (const DlmRun& run : runs) {
        if (run.failure.size() <= kCellMax) continue;
        found.insert(run.point.program + " " + run.point.size + ", " + column_of(run.point) +
                     format(" at %g %%: ", run.point.local_percent) + run.failure);
    }
    return {found.begin(), found.end()};
}

std::vector<std::string> dlm_differences(const std::vector<DlmRun>& runs) {
    std::set<std::string> found;
    for (const DlmRun& run : runs) {
        if (!run.failure.empty() || run.digest.empty()) continue;
        const DlmRun* const plain = plain_of(runs, run.point);
        if (plain == nullptr || plain->digest == run.digest) continue;
        found.insert(run.point.program + " " + run.point.size + ": " + column_of(run.point) +
                     format(" at %g %%", run.point.local_percent) +
                     " has another result than the plain program");
    }
    return {found.begin(), found.end()};
}

}  // namespace hanare::bench
