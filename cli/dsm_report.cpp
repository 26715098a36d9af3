// SPDX-License-Identifier: Apache-2.0
#include "cli/dsm_report.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/program_run.hpp"
#include "sys/file.hpp"
#include "sys/program_file.hpp"
#include "sys/text_file.hpp"

namespace hanare::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPatience{30};  // of debugging information that is large
constexpr const char* kFirstLine = "shared memory of ";

// "[FILE+0xOFFSET]".
struct Place {
    size_t begin = 0;
    size_t end = 0;
    std::string file;
    std::string offset;
};

std::vector<Place> places_in(const std::string& text) {
    std::vector<Place> places;
    for (size_t begin = 0; (begin = text.find('[', begin)) != text.npos; ++begin) {
        const size_t end = text.find_first_of("]\n", begin);
        if (end == text.npos || text[end] != ']') continue;
        const size_t plus = text.rfind("+0x", end);
        if (plus == text.npos || plus < begin) continue;
        places.push_back({begin, end + 1, text.substr(begin + 1, plus - begin - 1),
                          text.substr(plus + 1, end - plus - 1)});
    }
    return places;
}

std::string name_of(std::string_view path) {
    return std::string(path.substr(path.find_last_of('/') + 1));
}

// "relax" and "/home/x/jacobi.c:41 (discriminator 3)" become "jacobi.c:41 (relax)"; empty: unknown.
std::string source_of(const std::string& function, std::string line) {
    line = line.substr(0, line.find(" (discriminator"));
    const bool has_line = !line.starts_with("??") && !line.ends_with(":?") && !line.ends_with(":0");
    if (has_line) return name_of(line) + " (" + function + ")";
    return function == "??" ? "" : function;
}

using Sources = std::map<std::string, std::string>;  // by offset

// Of a file's offsets; those that are not known are left out, and so all where there is no means.
Sources sources_of(const std::string& file, const std::vector<std::string>& offsets) {
    const auto program = sys::find_program("addr2line");
    std::error_code error;
    const std::string folder = fs::temp_directory_path(error).string();
    sys::FileDescriptor input;
    sys::FileDescriptor output;
    if (!program || error || sys::open_unnamed(folder, input) != 0 ||
        sys::open_unnamed(folder, output) != 0) {
        return {};
    }
    sys::MeasuredProgram::Launch launch;
    launch.path = *program;
    launch.arguments = {"addr2line", "-f", "-C", "-e", file};
    launch.arguments.insert(launch.arguments.end(), offsets.begin(), offsets.end());
    launch.input = input.number();
    launch.output = output.number();
    if (!run_program(launch, kPatience, -1).is_good()) return {};
    Sources sources;
    std::stringstream lines(output_text(output.number()));
    std::string function;
    std::string line;
    for (const std::string& offset : offsets) {
        if (!std::getline(lines, function) || !std::getline(lines, line)) break;
        if (std::string source = source_of(function, line); !source.empty()) {
            sources[offset] = std::move(source);
        }
    }
    return sources;
}

std::string with_sources(const std::string& text) {
    const std::vector<Place> places = places_in(text);
    std::map<std::string, std::vector<std::string>> offsets;
    for (const Place& place : places) {
        auto& of_file = offsets[place.file];
        if (std::ranges::count(of_file, place.offset) == 0) of_file.push_back(place.offset);
    }
    std::map<std::string, Sources> sources;
    for (const auto& [file, of_file] : offsets) sources[file] = sources_of(file, of_file);
    std::string resolved;
    size_t done = 0;
    for (const Place& place : places) {
        resolved += text.substr(done, place.begin - done);
        const Sources& known = sources[place.file];
        const auto source = known.find(place.offset);
        resolved +=
            source != known.end() ? source->second : name_of(place.file) + "+" + place.offset;
        done = place.end;
    }
    return resolved + text.substr(done);
}

// Lines of cells, the first of which is to the left.
std::string table_of(const std::vector<std::vector<std::string>>& rows) {
    std::vector<size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string text;
    for (const auto& row : rows) {
        for (size_t i = 0; i < row.size(); ++i) {
            const std::string blanks(widths[i] - row[i].size(), ' ');
            text += i == 0 ? row[i] + blanks : "  " + blanks + row[i];
        }
        text += '\n';
    }
    return text;
}

// What has tabs is a table.
std::string with_tables(const std::string& text) {
    std::string shown;
    std::vector<std::vector<std::string>> rows;
    std::stringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.find('\t') != line.npos) {
            std::stringstream cells(line);
            rows.emplace_back();
            for (std::string cell; std::getline(cells, cell, '\t');) rows.back().push_back(cell);
            continue;
        }
        shown += table_of(rows) + line + '\n';
        rows.clear();
    }
    return shown + table_of(rows);
}

int run(const std::string& path) {
    const auto text = read_dsm_report(path);
    if (!text) return report(text.error());
    std::fputs(text->c_str(), stdout);
    return kExitSuccess;
}

}  // namespace

Result<std::string> read_dsm_report(const std::string& path) {
    const auto text = sys::read_text_file(path);
    if (!text) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "no report: %.200s", text.error().text);
    }
    if (!text->starts_with(kFirstLine)) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "%.200s is no report of HANARE_DSM_REPORT: did all tasks end by "
                    "hanare_dsm_finish or Tmk_exit?",
                    path.c_str());
    }
    return with_tables(with_sources(*text));
}

void add_dsm_report(CLI::App& app) {
    CLI::App* const report_app = app.add_subcommand(
        "dsm-report",
        "which blocks of shared memory cost most, who shares them falsely, and where");
    auto path = std::make_shared<std::string>();
    report_app->add_option("FILE", *path, "that HANARE_DSM_REPORT has named")->required();
    set_run(*report_app, [path] { return run(*path); });
}

}  // namespace hanare::cli
