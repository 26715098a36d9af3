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

#include <CLI/CLI.hpp>

#include "base/result.hpp"
#include "config/options.hpp"
#include "sys/interrupt.hpp"

namespace hanare::cli {

inline constexpr int kExitSuccess = 0;
inline constexpr int kExitCannotRun = 1;         // doctor: something prevents Hanare from running
inline constexpr int kExitBadUsage = 2;          // after one line: flag, value, what is allowed
inline constexpr int kExitInternalFailure = 70;  // after one line: what failed, what to do

void add_ps(CLI::App& app);
void add_info(CLI::App& app);
void add_doctor(CLI::App& app);
void add_demo(CLI::App& app);
void add_bench(CLI::App& app);

// All but `run`, in the program that has them.
void add_other_subcommands(CLI::App& app);
// Of the two programs (front.cpp), this one goes on, or the other takes its place.  A status where
// it should and cannot.
int become_responsible(int argc, char** argv);

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

// load_options(), its warnings logged and the log level set.
Result<config::Options> load_and_apply(const config::Overrides& overrides);

// Runs a command that must not leave things behind when a signal asks it to end, and does so by
// looking at sys::Interrupt::requested() often.  It then ends with an error, and the process ends
// as the signal would have ended it.
int run_interruptible(const char* name,
                      const std::function<Result<void>(const sys::Interrupt&)>& body);

// Prints "hanare: error: TEXT" and returns the exit status it stands for: kExitBadUsage for values
// that the user can correct, kExitInternalFailure for the rest.
int report(const Error& error);

}  // namespace hanare::cli
