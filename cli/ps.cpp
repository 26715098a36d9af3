// SPDX-License-Identifier: Apache-2.0
//
// `hanare ps`: this user's processes with pools, and how they go.
#include <algorithm>
#include <cstdio>

#include <CLI/CLI.hpp>

#include "base/units.hpp"
#include "cli/commands.hpp"
#include "cli/processes.hpp"
#include "cli/run_report.hpp"
#include "cli/table.hpp"

namespace hanare::cli {
namespace {

using nlohmann::ordered_json;

constexpr double kNsPerSecond = 1e9;

std::string text_of(const Found& found) {
    Table table({{"pid", 8},
                 {"program", 16},
                 {"far", 10},
                 {"local/budget", 21},
                 {"in", 10},
                 {"out", 10},
                 {"waiting", 9}});
    for (const auto& [process_id, process] : found.processes) {
        const auto size = [&](const char* name) { return format_size(process.figures.at(name)); };
        table.add_row(
            {std::to_string(process_id), printable(process.command), size("far_bytes"),
             size("local_bytes") + "/" + size("budget_bytes"), size("read_bytes"),
             size("written_bytes"),
             format_duration(static_cast<double>(process.figures.at("wait_ns")) / kNsPerSecond)});
    }
    return table.text();
}

ordered_json json_of(Found found) {
    ordered_json processes = ordered_json::array();
    for (const auto& [process_id, process] : found.processes) {
        ordered_json json = {{"process_id", process_id}, {"command", process.command}};
        for (const char* const name : kFigures) json[name] = process.figures.at(name);
        json["answers"] = ordered_json::array();
        for (const ordered_json& answer : found.answers) {
            if (answer.at("process_id") == process_id) json["answers"].push_back(answer);
        }
        processes.push_back(std::move(json));
    }
    std::sort(found.runs.begin(), found.runs.end(), [](const auto& a, const auto& b) {
        return a.at("run_id").template get<int>() < b.at("run_id").template get<int>();
    });
    return {{"processes", std::move(processes)}, {"runs", std::move(found.runs)}};
}

int run_ps(bool as_json) {
    Found found = ask_all_processes();
    std::fputs((as_json ? json_text(json_of(std::move(found)), 1) : text_of(found)).c_str(),
               stdout);
    return kExitSuccess;
}

}  // namespace

void add_ps(CLI::App& app) {
    CLI::App* const ps =
        app.add_subcommand("ps", "processes of this user with far memory, and how they go");
    const auto as_json = std::make_shared<bool>(false);
    ps->add_flag("--json", *as_json, "print JSON");
    set_run(*ps, [as_json] { return run_ps(*as_json); });
}

}  // namespace hanare::cli
