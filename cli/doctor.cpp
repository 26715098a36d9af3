// SPDX-License-Identifier: Apache-2.0
//
// `hanare doctor`: what this machine and this user offer, what Hanare does with it, what to change.
// Exit status 0 when Hanare can run, 1 when something prevents it.
#include <cstdio>

#include <nlohmann/json.hpp>

#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/doctor_checks.hpp"
#include "cli/table.hpp"

namespace hanare::cli {

namespace {

std::string obstacles(const std::vector<Finding>& findings) {
    std::string text;
    for (const Finding& finding : findings) {
        if (finding.prevents) text += (text.empty() ? "" : ", ") + finding.check;
    }
    return text;
}

void print_text(const std::vector<Finding>& findings) {
    Table table(
        {{"", 4}, {"check", 13}, {"found", 30}, {"what Hanare does", 32}, {"what to change", 30}});
    for (const Finding& finding : findings) {
        const char* const mark = finding.prevents ? "STOP" : finding.change.empty() ? "ok" : "note";
        table.add_row({mark, finding.check, finding.found, finding.use, finding.change});
    }
    std::fputs(table.text().c_str(), stdout);
    const std::string obstacle = obstacles(findings);
    if (obstacle.empty()) {
        std::printf("\nHanare can run here.\n");
    } else {
        std::printf("\nHanare cannot run here: see %s.\n", obstacle.c_str());
    }
}

void print_json(const std::vector<Finding>& findings) {
    nlohmann::ordered_json document;
    document["can_run"] = obstacles(findings).empty();
    document["checks"] = nlohmann::ordered_json::array();
    for (const Finding& finding : findings) {
        document["checks"].push_back({{"check", finding.check},
                                      {"found", finding.found},
                                      {"use", finding.use},
                                      {"change", finding.change},
                                      {"prevents", finding.prevents}});
    }
    std::puts(document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

}  // namespace

void add_doctor(CLI::App& app) {
    CLI::App* const doctor =
        app.add_subcommand("doctor", "what this machine offers, what Hanare does with it");
    const auto overrides = add_option_flags(*doctor);
    const auto as_json = std::make_shared<bool>(false);
    doctor->add_flag("--json", *as_json, "print JSON");
    set_run(*doctor, [overrides, as_json] {
        const Result<config::Options> options = load_and_apply(*overrides);
        if (!options) return report(options.error());
        const std::vector<Finding> findings = examine(*options, sys::probe_platform());
        if (*as_json) {
            print_json(findings);
        } else {
            print_text(findings);
        }
        return obstacles(findings).empty() ? kExitSuccess : kExitCannotRun;
    });
}

}  // namespace hanare::cli
