// SPDX-License-Identifier: Apache-2.0
#include "cli/processes.hpp"

#include <cerrno>
#include <cstdio>

#include "control/addresses.hpp"
#include "control/client.hpp"
#include "control/protocol.hpp"

namespace hanare::cli {

using nlohmann::ordered_json;

namespace {

// By the process itself or by another: its own word counts more, and that of two libraries in it is
// added up.
void take(Found& found, const ordered_json& told, bool by_itself) {
    Process& process = found.processes[told.at("process_id").get<int>()];
    if (process.tells_itself && !by_itself) return;
    if (by_itself && !process.tells_itself) process = Process();
    process.tells_itself = by_itself;
    process.command = told.at("command").get<std::string>();
    for (const char* const name : kFigures) {
        const auto value = told.value(name, uint64_t{0});  // another version may tell less
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

}  // namespace

Found ask_all_processes() {
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

std::string printable(std::string name) {
    for (char& c : name) {
        if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
    }
    return name;
}

}  // namespace hanare::cli
