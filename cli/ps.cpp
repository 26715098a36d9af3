// SPDX-License-Identifier: Apache-2.0
//
// `hanare ps`: what runs under `hanare run` of this user, and how it goes.
#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "cli/commands.hpp"
#include "cli/run_control.hpp"
#include "cli/run_report.hpp"
#include "cli/table.hpp"

namespace hanare::cli {
namespace {

using nlohmann::ordered_json;

constexpr double kNsPerSecond = 1e9;

// Those that answered.  What does not is told of, but for what has ended meanwhile.
ordered_json ask_all() {
    ordered_json runs = ordered_json::array();
    for (const std::string& address : run_addresses()) {
        const auto answer = ask_run(address);
        if (!answer) {
            if (answer.error().os_errno == 0 || answer.error().os_errno == EAGAIN) {
                std::fprintf(stderr, "hanare: %s does not answer: %s\n", address.c_str(),
                             answer.error().text);
            }
            continue;
        }
        ordered_json run = ordered_json::parse(*answer, nullptr, false);
        const bool is_ours = run.is_object() && run["run_id"].is_number_integer();
        if (is_ours) runs.push_back(std::move(run));
    }
    std::sort(runs.begin(), runs.end(), [](const ordered_json& a, const ordered_json& b) {
        return a.at("run_id").get<int>() < b.at("run_id").get<int>();
    });
    return runs;
}

// For a terminal: the last part of the path, without characters that would move its cursor.
std::string program_name(const ordered_json& run) {
    std::string name = run.at("command").at(0).get<std::string>();
    name = name.substr(name.find_last_of('/') + 1);
    for (char& c : name) {
        if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
    }
    return name;
}

std::vector<std::string> row_of(const ordered_json& run) {
    const ordered_json& totals = run.at("totals");
    const auto size = [&](const char* name) {
        return format_size(totals.at(name).get<uint64_t>());
    };
    return {std::to_string(run.at("run_id").get<int>()),
            program_name(run),
            size("far_bytes"),
            size("local_bytes") + "/" + size("budget_bytes"),
            size("read_bytes"),
            size("written_bytes"),
            format_duration(totals.at("wait_ns").get<double>() / kNsPerSecond),
            format_duration(run.at("elapsed_s").get<double>())};
}

int run_ps(bool as_json) {
    const ordered_json runs = ask_all();
    if (as_json) {
        std::fputs(json_text(runs, 1).c_str(), stdout);
        return kExitSuccess;
    }
    Table table({{"pid", 8},
                 {"program", 20},
                 {"far", 10},
                 {"local/budget", 21},
                 {"in", 10},
                 {"out", 10},
                 {"waiting", 9},
                 {"elapsed", 9}});
    for (const ordered_json& run : runs) {
        try {
            table.add_row(row_of(run));
        } catch (const ordered_json::exception& error) {  // of another version
            std::fprintf(stderr, "hanare: an answer cannot be understood: %s\n", error.what());
        }
    }
    std::fputs(table.text().c_str(), stdout);
    return kExitSuccess;
}

}  // namespace

void add_ps(CLI::App& app) {
    CLI::App* const ps = app.add_subcommand("ps", "what runs under hanare run, and how it goes");
    const auto as_json = std::make_shared<bool>(false);
    ps->add_flag("--json", *as_json, "print JSON");
    set_run(*ps, [as_json] { return run_ps(*as_json); });
}

}  // namespace hanare::cli
