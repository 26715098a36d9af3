// SPDX-License-Identifier: Apache-2.0
//
// `hanare ps`: this user's processes with pools, and how they go.  Each tells of itself; of
// children that cannot, the others of their run do.
#include <algorithm>
#include <cstdio>
#include <map>

#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "cli/commands.hpp"
#include "cli/run_report.hpp"
#include "cli/table.hpp"
#include "control/addresses.hpp"
#include "control/client.hpp"
#include "control/protocol.hpp"

namespace hanare::cli {
namespace {

using nlohmann::ordered_json;

constexpr double kNsPerSecond = 1e9;
constexpr const char* kFigures[] = {"far_bytes", "local_bytes", "budget_bytes",
                                    "wait_ns",   "read_bytes",  "written_bytes"};

// One line, of one process.
struct Process {
    std::string command;
    std::map<std::string, uint64_t> figures;
    bool tells_itself = false;
};

struct Found {
    std::map<int, Process> processes;  // by process id
    ordered_json runs = ordered_json::array();
    ordered_json answers = ordered_json::array();  // of processes, as they came
};

// By the process itself or by another: its own word counts more, and that of two libraries in it is
// added up.
void take(Found& found, const ordered_json& told, bool by_itself) {
    Process& process = found.processes[told.at("process_id").get<int>()];
    if (process.tells_itself && !by_itself) return;
    if (by_itself && !process.tells_itself) process = Process();
    process.tells_itself = by_itself;
    process.command = told.at("command").get<std::string>();
    for (const char* const name : kFigures) {
        const auto value = told.at(name).get<uint64_t>();
        uint64_t& figure = process.figures[name];
        figure = by_itself ? figure + value : value;
    }
}

void take_answer(Found& found, ordered_json answer) {
    if (answer.contains("run_id")) {
        for (const ordered_json& process : answer.at("processes")) {
            if (!process.at("has_ended").get<bool>()) take(found, process, false);
        }
        found.runs.push_back(std::move(answer));
        return;
    }
    take(found, answer, true);
    if (answer.contains("others")) {
        for (const ordered_json& process : answer.at("others")) take(found, process, false);
    }
    found.answers.push_back(std::move(answer));
}

// What does not answer is told of, but for what has ended meanwhile.
Found ask_all() {
    Found found;
    for (const std::string& address : control::all_addresses()) {
        const auto answer = control::ask(address, control::kStatistics);
        if (!answer) {
            if (answer.error().os_errno == 0 || answer.error().os_errno == EAGAIN) {
                std::fprintf(stderr, "hanare: %s does not answer: %s\n", address.c_str(),
                             answer.error().text);
            }
            continue;
        }
        try {
            take_answer(found, ordered_json::parse(*answer));
        } catch (const ordered_json::exception& error) {  // of another version
            std::fprintf(stderr, "hanare: the answer of %s cannot be understood: %s\n",
                         address.c_str(), error.what());
        }
    }
    return found;
}

// For a terminal: without characters that would move its cursor.
std::string printable(std::string name) {
    for (char& c : name) {
        if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
    }
    return name;
}

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
    Found found = ask_all();
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
