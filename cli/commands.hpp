// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of `hanare` and what they share.  A subcommand is one function add_NAME(), which
// main() calls once: it creates the CLI11 subcommand, its flags, and what runs when it is chosen:
//
//   void add_demo(CLI::App& app) {
//       CLI::App* demo = app.add_subcommand("demo", "the main job under memory pressure");
//       auto overrides = add_option_flags(*demo, {OptionId::local_bytes, OptionId::store});
//       set_run(*demo, [overrides] { return run_demo(*overrides); });
//   }
//
// Single-threaded.  CLI11's own environment and configuration-file features are not used: their
// precedence is not ours (config/options.hpp).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "cli/outcome.hpp"
#include "config/options.hpp"
#include "sys/interrupt.hpp"

// CLI/CLI.hpp takes seconds to compile, and most who include this need no more of it.
namespace CLI {
class App;
}

namespace hanare::cli {

struct RunArguments;

// `arguments` is filled before the command line is parsed and outlives the app.
void add_run(CLI::App& app, const RunArguments& arguments);
void add_launch(CLI::App& app, const RunArguments& arguments);
void add_space(CLI::App& app, const RunArguments& arguments);
void add_server(CLI::App& app);
void add_status(CLI::App& app);
void add_drain(CLI::App& app);
void add_ps(CLI::App& app);
void add_top(CLI::App& app);
void add_report(CLI::App& app);
void add_dsm_report(CLI::App& app);
void add_pool(CLI::App& app);
void add_info(CLI::App& app);
void add_doctor(CLI::App& app);
void add_demo(CLI::App& app);
void add_bench(CLI::App& app);

// How many of `argv` are for us.  From the first argument of a subcommand that starts a program
// (`hanare run`, `hanare launch`) that is neither an option nor an option's value, or from what
// follows "--", they are moved to `arguments`.
int part_arguments(CLI::App& app, int argc, char** argv, RunArguments& arguments);

// What the subcommand does when it is chosen; the returned value is the exit status.
void set_run(CLI::App& subcommand, std::function<int()> run);

// Gives the subcommand the flag of each named option (all when none is named), as text; checking
// is config::load_options' work.  The list is filled by parsing and so complete inside set_run().
std::shared_ptr<config::Overrides> add_option_flags(CLI::App& subcommand,
                                                    std::vector<config::OptionId> which = {});

// `--prefetch on|off`, another way to say whether there is read-ahead.
void add_prefetch_flag(CLI::App& subcommand, const std::shared_ptr<config::Overrides>& overrides);

// The parts of "a,b,c"; "" has one, which is empty.
std::vector<std::string> split_list(const std::string& list);

// What benchmarks take as --local-percent: numbers above 0, up to 100.
Result<std::vector<double>> parse_local_percents(const std::string& list);

// Runs a command that must not leave things behind when a signal asks it to end, and does so by
// looking at sys::Interrupt::requested() often.  It then ends with an error, and the process ends
// as the signal would have ended it.
int run_interruptible(const char* name,
                      const std::function<Result<void>(const sys::Interrupt&)>& body);

}  // namespace hanare::cli
