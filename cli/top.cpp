// SPDX-License-Identifier: Apache-2.0
//
// `hanare top`: this user's processes with far memory, and memory servers, at work: what they did
// between two looks.
#include <cstdio>
#include <optional>

#include <CLI/CLI.hpp>

#include "base/units.hpp"
#include "cli/commands.hpp"
#include "cli/processes.hpp"
#include "cli/run_report.hpp"
#include "cli/server_question.hpp"
#include "cli/table.hpp"
#include "config/rules.hpp"
#include "sys/clock.hpp"
#include "sys/event.hpp"
#include "sys/terminal.hpp"

namespace hanare::cli {
namespace {

using nlohmann::ordered_json;

constexpr config::Range kEveryAllowed_ms(100, 3'600'000);

struct TopFlags {
    std::string every_ms = "1000";
    std::vector<std::string> servers;
    std::optional<std::string> secret_file;
    bool is_once = false;
    bool as_json = false;
};

struct Look {
    uint64_t time_ns = 0;
    Found found;
};

// A process: sizes now, and rates since the look before; null where there is none, or it is not
// told.
ordered_json process_json(const Look& before, const Look& now, int process_id,
                          const Process& process) {
    const auto known = before.found.processes.find(process_id);
    const double seconds = static_cast<double>(now.time_ns - before.time_ns) / 1e9;
    const auto rate = [&](const char* name) -> ordered_json {
        if (known == before.found.processes.end()) return nullptr;
        const uint64_t first = known->second.figures.at(name);
        const uint64_t last = process.figures.at(name);
        return last < first ? 0.0 : static_cast<double>(last - first) / seconds;
    };
    ordered_json json = {{"process_id", process_id}, {"command", process.command}};
    for (const char* const name : {"far_bytes", "local_bytes", "budget_bytes"}) {
        json[name] = process.figures.at(name);
    }
    json["read_bytes_per_s"] = rate("read_bytes");
    json["written_bytes_per_s"] = rate("written_bytes");
    const ordered_json waits = rate("wait_ns");
    json["waiting_threads"] = waits.is_null() ? waits : ordered_json(waits.get<double>() / 1e9);
    const ordered_json hits = rate("hits");
    const ordered_json misses = rate("misses");
    json["hit_ratio"] = nullptr;
    if (!hits.is_null() && hits.get<double>() + misses.get<double>() > 0) {
        json["hit_ratio"] = hits.get<double>() / (hits.get<double>() + misses.get<double>());
    }
    return json;
}

ordered_json server_row(const std::string& url, const TopFlags& flags) {
    const auto told = ask_server(url, flags.secret_file);
    if (!told) return {{"url", url}, {"error", told.error().text}};
    ordered_json json = {{"url", url}};
    json.update(*told);
    return json;
}

ordered_json json_of(const Look& before, const Look& now, const TopFlags& flags) {
    ordered_json json = {{"seconds", static_cast<double>(now.time_ns - before.time_ns) / 1e9},
                         {"processes", ordered_json::array()},
                         {"servers", ordered_json::array()}};
    for (const auto& [process_id, process] : now.found.processes) {
        json["processes"].push_back(process_json(before, now, process_id, process));
    }
    for (const std::string& url : flags.servers) {
        json["servers"].push_back(server_row(url, flags));
    }
    return json;
}

std::string rate_text(const ordered_json& rate) {
    return rate.is_null() ? "-" : format_size(static_cast<uint64_t>(rate.get<double>())) + "/s";
}

std::string share_text(const ordered_json& share) {
    if (share.is_null()) return "-";
    char text[32];
    std::snprintf(text, sizeof text, "%.0f %%", 100 * share.get<double>());
    return text;
}

std::string text_of(const ordered_json& json) {
    Table table({{"pid", 8},
                 {"program", 16},
                 {"far", 10},
                 {"local/budget", 21},
                 {"in", 12},
                 {"out", 12},
                 {"hits", 6},
                 {"waiting", 7}});
    for (const ordered_json& process : json.at("processes")) {
        const auto size = [&](const char* name) {
            return format_size(process.at(name).get<uint64_t>());
        };
        table.add_row(
            {process.at("process_id").dump(), printable(process.at("command").get<std::string>()),
             size("far_bytes"), size("local_bytes") + "/" + size("budget_bytes"),
             rate_text(process.at("read_bytes_per_s")),
             rate_text(process.at("written_bytes_per_s")), share_text(process.at("hit_ratio")),
             share_text(process.at("waiting_threads"))});
    }
    std::string text = table.text();
    for (const ordered_json& server : json.at("servers")) {
        const auto url = printable(server.at("url").get<std::string>());
        if (server.contains("error")) {
            text += "\n" + printable(server.at("error").get<std::string>());
            continue;
        }
        const auto size = [&](const char* name) {
            return format_size(server.at(name).get<uint64_t>());
        };
        text += "\n" + url + ": " + size("leased_bytes") + " of " + size("total_bytes") +
                " leased, " + std::to_string(server.at("leases").size()) + " leases" +
                (server.at("draining").get<bool>() ? ", draining" : "");
    }
    return text + (json.at("servers").empty() ? "" : "\n");
}

Look look() {
    Look made;
    made.found = ask_all_processes();
    made.time_ns = sys::now_ns();
    return made;
}

Result<int> run_top(const TopFlags& flags) {
    HANARE_TRY_ASSIGN(const uint32_t every_ms, kEveryAllowed_ms.parse("--every", flags.every_ms));
    if (flags.secret_file == "-") {
        return config::bad_value("--secret-file", "-", "can be read once only",
                                 "the name of a file");
    }
    const sys::Interrupt interrupt;
    const bool is_live = !flags.is_once && !flags.as_json && sys::Terminal::is_there();
    std::optional<sys::Terminal> terminal;
    if (is_live) terminal.emplace();
    const auto wait = [&] {  // false: the end
        if (terminal) {
            const char key = terminal->wait_for_key(interrupt.fd(), static_cast<int>(every_ms));
            if (key == 'q') return false;
        } else {
            sys::wait_until_readable(interrupt.fd(), -1, static_cast<int>(every_ms));
        }
        return !sys::Interrupt::requested();
    };
    Look before = look();
    if (terminal) terminal->show("waiting for the second look; q ends\n");
    while (wait()) {
        Look now = look();
        const ordered_json json = json_of(before, now, flags);
        if (terminal) {
            terminal->show(text_of(json));
        } else {
            std::fputs((flags.as_json ? json.dump() + "\n" : text_of(json)).c_str(), stdout);
            // Nobody reads any more.
            if (std::fflush(stdout) != 0 && sys::Interrupt::requested()) {
                sys::Interrupt::end_process();
            }
        }
        if (flags.is_once) break;
        if (!terminal && !flags.as_json) std::fputc('\n', stdout);
        before = std::move(now);
    }
    return kExitSuccess;
}

}  // namespace

void add_top(CLI::App& app) {
    CLI::App* const top = app.add_subcommand(
        "top", "processes of this user with far memory, and memory servers, at work");
    const auto flags = std::make_shared<TopFlags>();
    top->add_option("--every", flags->every_ms, "milliseconds between two looks (default 1000)");
    top->add_option("--server", flags->servers, "tcp://HOST[:PORT], as often as there are such");
    top->add_option("--secret-file", flags->secret_file, "file with the servers' secret")
        ->envname("HANARE_SECRET_FILE");
    top->add_flag("--once", flags->is_once, "two looks, and what was between them");
    top->add_flag("--json", flags->as_json, "print JSON, a line for each look");
    top->footer(
        "hits: part of the faults on stored blocks that did not wait for the store; waiting: "
        "threads that\nwaited for it, 100 % is one all the time; key q ends.");
    set_run(*top, [flags] {
        const auto done = run_top(*flags);
        return done ? *done : report(done.error());
    });
}

}  // namespace hanare::cli
