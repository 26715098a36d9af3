// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "cli/run.hpp"

namespace hanare::cli {
namespace {

// How many words the option takes; those that nobody knows are refused later, as ours.
int words_of_option(CLI::App& run, const std::string& word) {
    const bool has_value = word.find('=') != std::string::npos;
    const CLI::Option* const option = has_value ? nullptr : run.get_option_no_throw(word);
    return option != nullptr && option->get_expected_max() > 0 ? 2 : 1;
}

}  // namespace

int part_arguments(CLI::App& app, int argc, char** argv, RunArguments& arguments) {
    constexpr std::string_view kEnd = "--";
    if (argc < 2 || argv[1] != std::string_view("run")) return argc;
    CLI::App& run = *app.get_subcommand("run");
    int at = 2;
    while (at < argc && *argv[at] == '-' && argv[at] != kEnd) at += words_of_option(run, argv[at]);
    if (at >= argc) return argc;
    arguments.program.assign(argv + at + (argv[at] == kEnd ? 1 : 0), argv + argc);
    return at;
}

}  // namespace hanare::cli
