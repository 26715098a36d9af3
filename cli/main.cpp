// SPDX-License-Identifier: Apache-2.0
//
// The program `hanare-tools`: parses the command line and runs one subcommand (commands.hpp).
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/run.hpp"
#include "config/nearest.hpp"
#include "config/rules.hpp"

namespace hanare::cli {
namespace {

// The subcommand that the arguments led to, and how its name is written.
struct Chosen {
    const CLI::App* app = nullptr;
    std::string command = "hanare";
};

Chosen chosen_of(const CLI::App& app) {
    Chosen chosen{.app = &app};
    for (auto next = app.get_subcommands(); !next.empty(); next = chosen.app->get_subcommands()) {
        chosen.app = next.front();
        chosen.command += " " + chosen.app->get_name();
    }
    return chosen;
}

int bad_usage(const Chosen& where, const std::string& text) {
    std::fprintf(stderr, "hanare: error: %s; see %s --help\n", text.c_str(), where.command.c_str());
    return kExitBadUsage;
}

// "info, doctor or demo"; empty when there are none.
std::string subcommand_list(const CLI::App& app) {
    std::string names;
    for (const CLI::App* subcommand : app.get_subcommands({})) {
        if (subcommand->get_group().empty()) continue;  // is in no list
        names += (names.empty() ? "" : "|") + subcommand->get_name();
    }
    return config::enumerate(names);
}

bool is_option(const CLI::App& app, const std::string& text) {
    return text.starts_with("--") && app.get_option_no_throw(text) != nullptr;
}

// CLI11 takes whatever follows an option for its value, other options, too.
void refuse_options_as_values(CLI::App& app) {
    for (CLI::Option* option : app.get_options()) {
        if (option->get_expected_max() == 0) continue;
        option->check([&app](const std::string& value) {
            return is_option(app, value) ? "is an option" : std::string();
        });
    }
    for (CLI::App* subcommand : app.get_subcommands({})) refuse_options_as_values(*subcommand);
}

// An option that took another option for its value, which is missing.
const CLI::Option* robber(const CLI::App& app) {
    for (const CLI::Option* option : app.get_options()) {
        for (const std::string& value : option->results()) {
            if (is_option(app, value)) return option;
        }
    }
    return nullptr;
}

// An argument that nothing expects, with the name it may have been meant to be.
int unknown_argument(const Chosen& where, const std::string& argument) {
    std::vector<std::string> names;
    for (const CLI::App* subcommand : where.app->get_subcommands({})) {
        if (!subcommand->get_group().empty()) names.push_back(subcommand->get_name());
    }
    for (const CLI::Option* option : where.app->get_options()) {
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    const std::vector<std::string_view> known(names.begin(), names.end());
    const std::string flag = argument.substr(0, argument.find('='));
    if (where.app->get_option_no_throw(flag) != nullptr) {
        return bad_usage(where, config::in_quotes(flag) + " must come after " + where.command);
    }
    std::string hint = config::suggestion(flag, known);
    const std::string subcommands = subcommand_list(*where.app);
    if (hint.empty() && !subcommands.empty()) hint = "; allowed is " + subcommands;
    return bad_usage(where, "unknown argument " + config::in_quotes(argument) + hint);
}

int missing_argument(const Chosen& where) {
    const std::string names = subcommand_list(*where.app);
    if (!names.empty()) return bad_usage(where, where.command + " needs a name: " + names);
    for (const CLI::Option* option : where.app->get_options()) {
        if (option->get_required() && option->count() == 0) {
            return bad_usage(where, where.command + " needs " + option->get_name());
        }
    }
    return bad_usage(where, "the arguments cannot be understood");
}

// The command line in our words, whatever CLI11 calls it.  Its texts begin with the option's name
// where a value is missing or surplus.
int misused_option(const Chosen& where, const CLI::ParseError& error) {
    const std::string text = error.what();
    const std::string name = text.substr(0, text.find(':'));
    const CLI::Option* const option = where.app->get_option_no_throw(name);
    if (option == nullptr) return bad_usage(where, "the arguments cannot be understood");
    return bad_usage(where, name + (option->count() > 1 ? ": is given more than once"
                                                        : ": its value is missing"));
}

// A switch that was given a value; CLI11 does not say which reliably.
int switch_with_value(const Chosen& where, const std::vector<std::string>& arguments) {
    for (const std::string& argument : arguments) {
        const size_t equal_sign = argument.find('=');
        if (equal_sign == std::string::npos) continue;
        const CLI::Option* const option =
            where.app->get_option_no_throw(argument.substr(0, equal_sign));
        if (option != nullptr && option->get_expected_max() == 0) {
            return bad_usage(where, argument.substr(0, equal_sign) + ": takes no value, not " +
                                        config::in_quotes(argument.substr(equal_sign + 1)));
        }
    }
    return bad_usage(where, "the arguments cannot be understood");
}

int run(int argc, char** argv, RunArguments& arguments) {
    CLI::App app{
        "Memory beyond one process and one machine's DRAM, used with plain loads and stores."};
    app.name("hanare");
    app.require_subcommand(0, 1);
    app.set_version_flag("--version", std::string("hanare ") + HANARE_VERSION);
    add_run(app, arguments);
    add_launch(app, arguments);
    add_space(app, arguments);
    add_server(app);
    add_status(app);
    add_drain(app);
    add_ps(app);
    add_top(app);
    add_report(app);
    add_dsm_report(app);
    add_pool(app);
    add_info(app);
    add_doctor(app);
    add_demo(app);
    add_bench(app);
    refuse_options_as_values(app);
    argc = part_arguments(app, argc, argv, arguments);
    try {
        app.parse(argc, argv);
    } catch (const CLI::RuntimeError& error) {
        return error.get_exit_code();
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return app.exit(error);
        const Chosen where = chosen_of(app);
        if (const CLI::Option* const option = robber(*where.app)) {
            return bad_usage(where, option->get_name() + ": its value is missing");
        }
        const std::vector<std::string> rest = app.remaining(true);
        if (!rest.empty()) return unknown_argument(where, rest.front());
        if (error.get_name() == "RequiredError") return missing_argument(where);
        if (error.get_name() == "ArgumentMismatch") return misused_option(where, error);
        return switch_with_value(where, {argv, argv + argc});
    }
    if (app.get_subcommands().empty()) {
        std::fputs(app.help().c_str(), stderr);
        return kExitBadUsage;
    }
    return kExitSuccess;
}

}  // namespace
}  // namespace hanare::cli

int main(int argc, char** argv) {
    return hanare::cli::run_command([&](bool ignores_file_size_signal) {
        hanare::cli::RunArguments arguments;
        arguments.ignores_file_size_signal = ignores_file_size_signal;
        return hanare::cli::run(argc, argv, arguments);
    });
}
