// SPDX-License-Identifier: Apache-2.0
//
// The options of Hanare, generated from options.def.  Precedence: override (a flag, a field of
// hanare_pool_options), HANARE_* environment, file, default.  The file is $HANARE_CONFIG, else
// hanare/hanare.toml in $XDG_CONFIG_HOME or ~/.config if it exists.
// A bad value is an error, wherever it stands, that names option, value, source and what is
// allowed. Any thread; the environment must not change meanwhile.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace hanare::config {

// In the order of the names in options.def.
inline constexpr std::string_view kEngineNames =
    "auto|sigbus-move|sigbus-copy|segv-remap|thread|shared";
enum class Engine : uint8_t { kAuto, kSigbusMove, kSigbusCopy, kSegvRemap, kThread, kShared };
enum class Replacement : uint8_t { kSecondChance, kRoundRobin };
enum class Background : uint8_t { kOn, kOff };
enum class Io : uint8_t { kAuto, kUring, kSync };
enum class Switch : uint8_t { kOn, kOff };
enum class LogLevel : uint8_t { kError, kWarn, kInfo, kDebug };

// Named as the members of Options, so that a row of options.def has one name everywhere.
enum class OptionId : uint8_t {
#define OPTION(type, name, key, default_text, rule, doc) name,
#include "config/options.def"
#undef OPTION
};

inline constexpr size_t kOptionCount = 0
#define OPTION(type, name, key, default_text, rule, doc) +1
#include "config/options.def"
#undef OPTION
    ;

struct Options {
#define OPTION(type, name, key, default_text, rule, doc) type name{};
#include "config/options.def"
#undef OPTION

    // Per option: "flag --block", "environment HANARE_BLOCK", "file /path", "default".
    std::array<std::string, kOptionCount> sources;
    // Per option: how "auto" was resolved; empty when the value was given.
    std::array<std::string, kOptionCount> notes;
    // For the log: unknown HANARE_* variables.  This layer lies below the log.
    std::vector<std::string> warnings;
};

// A value from above the environment, as text; `source` says where it stood ("flag --block").
struct Override {
    OptionId option;
    std::string text;
    std::string source;
};
using Overrides = std::vector<Override>;

Result<Options> load_options(const Overrides& overrides = {});

// Without a file: where `hanare run` has put all values into the environment.
Result<Options> load_from_environment();

// HANARE_* variables of the environment that mean nothing.
std::vector<std::string> unknown_variables();

// What is known about an option without loading it.
struct OptionRow {
    OptionId id;
    std::string_view key;
    std::string_view default_text;
    std::string allowed;
    std::string_view doc;
    std::string environment;  // HANARE_READ_AHEAD
    std::string flag;         // --read-ahead
};
std::span<const OptionRow> option_rows();

// Every engine that may be asked for.
std::vector<std::string> engine_names();

// A value as a user would write it.
std::string value_text(const Options& options, OptionId id);

}  // namespace hanare::config
