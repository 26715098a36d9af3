// SPDX-License-Identifier: Apache-2.0
//
// What all subcommands share: option flags, running.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <sstream>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "config/rules.hpp"
#include "config/store_spec.hpp"
#include "sys/interrupt.hpp"

namespace hanare::cli {

void set_run(CLI::App& subcommand, std::function<int()> run) {
    subcommand.callback([run = std::move(run)] {
        // CLI11's way to end with a status; main() takes it as such.
        if (const int status = run(); status != kExitSuccess) throw CLI::RuntimeError(status);
    });
}

std::shared_ptr<config::Overrides> add_option_flags(CLI::App& subcommand,
                                                    std::vector<config::OptionId> which) {
    auto overrides = std::make_shared<config::Overrides>();
    for (const config::OptionRow& row : config::option_rows()) {
        if (!which.empty() && std::find(which.begin(), which.end(), row.id) == which.end())
            continue;
        // Strings, whatever the type: the rule of the option words the error.  Several stores are
        // filled in their order.
        const auto take = [overrides, &row](const std::vector<std::string>& texts) {
            overrides->push_back({row.id, config::tier_spec(texts), "flag " + row.flag});
        };
        CLI::Option* const option = subcommand.add_option_function<std::vector<std::string>>(
            row.flag, take, std::string(row.doc));
        if (row.id != config::OptionId::store) option->expected(1);
        option->allow_extra_args(false)->type_name("VALUE")->description(
            std::string(row.doc) + " (default " + std::string(row.default_text) +
            "; allowed: " + row.allowed + ")");
    }
    return overrides;
}

void add_prefetch_flag(CLI::App& subcommand, const std::shared_ptr<config::Overrides>& overrides) {
    const auto take = [overrides](const std::string& text) {
        const auto wanted = config::Boolean{}.parse("prefetch (flag --prefetch)", text);
        if (!wanted) throw CLI::RuntimeError(report(wanted.error()));
        if (!*wanted) {
            overrides->push_back({config::OptionId::read_ahead_blocks, "0", "flag --prefetch"});
        }
    };
    subcommand.add_option_function<std::string>("--prefetch", take)
        ->type_name("VALUE")
        ->description("off is read_ahead = 0; on leaves it as it is (allowed: " +
                      config::Boolean{}.allowed() + ")");
}

std::vector<std::string> split_list(const std::string& list) {
    std::vector<std::string> parts;
    std::istringstream text(list);
    for (std::string part; std::getline(text, part, ',');) parts.push_back(part);
    if (list.empty() || list.ends_with(',')) parts.emplace_back();
    return parts;
}

Result<std::vector<double>> parse_local_percents(const std::string& list) {
    std::vector<double> percents;
    for (const std::string& text : split_list(list)) {
        double percent = 0;
        const char* const end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(text.data(), end, percent);
        if (error != std::errc{} || rest != end || !(percent > 0 && percent <= 100)) {
            return config::bad_value("--local-percent", text, "is not a percentage",
                                     "a comma-separated list of numbers above 0, up to 100");
        }
        percents.push_back(percent);
    }
    return percents;
}

int run_interruptible(const char* name,
                      const std::function<Result<void>(const sys::Interrupt&)>& body) {
    const sys::Interrupt interrupt;
    const Result<void> done = body(interrupt);
    std::fflush(stdout);
    if (sys::Interrupt::requested()) {
        std::fprintf(stderr, "%s: interrupted; nothing was left behind\n", name);
        sys::Interrupt::end_process();
    }
    return done ? kExitSuccess : report(done.error());
}

}  // namespace hanare::cli
