// SPDX-License-Identifier: Apache-2.0
#include "config/options.hpp"

#include <algorithm>
#include <cstdlib>
#include <unistd.h>

#include "base/units.hpp"
#include "config/file.hpp"
#include "config/nearest.hpp"
#include "config/rules.hpp"
#include "config/store_spec.hpp"
#include "sys/memory_limits.hpp"

namespace hanare::config {

namespace {

constexpr std::string_view kEnvironmentPrefix = "HANARE_";
constexpr std::string_view kFileVariable = "HANARE_CONFIG";

std::string environment_name(std::string_view key) {
    std::string name(kEnvironmentPrefix);
    for (const char c : key) name += c >= 'a' && c <= 'z' ? static_cast<char>(c & ~0x20) : c;
    return name;
}

std::string flag_name(std::string_view key) {
    std::string name = "--";
    for (const char c : key) name += c == '_' ? '-' : c;
    return name;
}

size_t index_of(OptionId id) { return static_cast<size_t>(id); }

// Checks a value and takes it.
Result<void> take(Options& options, const Override& value) {
    const OptionRow& row = option_rows()[index_of(value.option)];
    const std::string what = std::string(row.key) + " (" + value.source + ")";
    switch (value.option) {
#define OPTION(type, name, key, default_text, rule, doc)                 \
    case OptionId::name: {                                               \
        HANARE_TRY_ASSIGN(options.name, (rule).parse(what, value.text)); \
        break;                                                           \
    }
#include "config/options.def"
#undef OPTION
    }
    options.sources[index_of(value.option)] = value.source;
    return {};
}

std::vector<std::string_view> known_keys() {
    std::vector<std::string_view> keys;
    for (const OptionRow& row : option_rows()) keys.push_back(row.key);
    return keys;
}

// Empty when no file is to be read.  `is_required` when the user named it.
std::string file_path(bool& is_required) {
    const char* const named = secure_getenv(kFileVariable.data());
    is_required = named != nullptr && *named != '\0';
    if (named != nullptr) return named;
    const char* const xdg = secure_getenv("XDG_CONFIG_HOME");
    if (xdg != nullptr && *xdg == '/') return std::string(xdg) + "/hanare/hanare.toml";
    const char* const home = secure_getenv("HOME");
    return home != nullptr && *home == '/' ? std::string(home) + "/.config/hanare/hanare.toml" : "";
}

Result<void> take_file(Options& options) {
    bool is_required = false;
    const std::string path = file_path(is_required);
    if (path.empty()) return {};
    const Result<std::vector<FileEntry>> entries = read_file(path);
    if (!entries) {
        if (entries.error().status == HANARE_STATUS_NOT_FOUND && !is_required) return {};
        Error error = entries.error();
        error.status = HANARE_STATUS_INVALID_ARGUMENT;
        return std::unexpected(error);
    }
    for (const FileEntry& entry : *entries) {
        const OptionRow* found = nullptr;
        for (const OptionRow& row : option_rows()) {
            if (row.key == entry.key) found = &row;
        }
        if (found == nullptr) {
            return fail(HANARE_STATUS_INVALID_ARGUMENT, "file %s:%u: unknown option %s%s",
                        path.c_str(), entry.line, in_quotes(entry.key).c_str(),
                        suggestion(entry.key, known_keys()).c_str());
        }
        HANARE_TRY(take(options, {found->id, entry.text, "file " + path}));
    }
    return {};
}

Result<void> take_environment(Options& options) {
    for (const OptionRow& row : option_rows()) {
        if (const char* const text = secure_getenv(row.environment.c_str()); text != nullptr) {
            HANARE_TRY(take(options, {row.id, text, "environment " + row.environment}));
        }
    }
    return {};
}

// Read by the build and the tests of Hanare, or made by `hanare run` for its programs.
bool is_of_the_project(std::string_view name) {
    constexpr std::string_view kNames[] = {"HANARE_NO_BOOTSTRAP", "HANARE_OS_RELEASE",
                                           "HANARE_BINARY"};
    constexpr std::string_view kPrefixes[] = {"HANARE_TEST_", "HANARE_STRESS_", "HANARE_FUZZ_",
                                              "HANARE_RUN_"};
    return std::ranges::find(kNames, name) != std::end(kNames) ||
           std::ranges::any_of(kPrefixes, [&](auto prefix) { return name.starts_with(prefix); });
}

// Compared is what follows the prefix, which would make everything alike.
std::string variable_suggestion(std::string_view name, std::span<const std::string_view> known) {
    std::vector<std::string_view> tails;
    for (const std::string_view other : known) {
        tails.push_back(other.substr(kEnvironmentPrefix.size()));
    }
    const std::string_view near = nearest(name.substr(kEnvironmentPrefix.size()), tails);
    if (near.empty()) return "";
    return "; did you mean '" + std::string(kEnvironmentPrefix) + std::string(near) + "'?";
}

std::vector<std::string_view> known_variables() {
    std::vector<std::string_view> known = {kFileVariable};
    for (const OptionRow& row : option_rows()) known.push_back(row.environment);
    return known;
}

void note_unknown_variables(Options& options) {
    for (const std::string& name : unknown_variables()) {
        options.warnings.push_back("the environment variable " + in_quotes(name) +
                                   " is unknown and has no effect" +
                                   variable_suggestion(name, known_variables()));
    }
}

// "file:" and "file:?size=SIZE"; the SPEC has been checked.
bool names_no_directory(std::string_view store) {
    const std::string_view rest = store.substr(store.find(':') + 1);
    return rest.empty() || rest.front() == '?';
}

// Puts what will be used in the place of "auto".
Result<void> resolve(Options& options) {
    if (options.local_bytes == 0) {
        HANARE_TRY_ASSIGN(const sys::MemoryLimit limit, sys::effective_memory_limit());
        options.local_bytes = std::max(round_down(limit.bytes / 5 * 4, kMiB), kMiB);
        options.notes[index_of(OptionId::local_bytes)] =
            "auto: 80 % of " + format_size(limit.bytes) + ", " + limit.origin;
    }
    std::string& note = options.notes[index_of(OptionId::store)];
    const std::string directory = default_store_directory();
    const std::string found = "directory " + directory + ", " + std::string(default_store_reason());
    if (options.store.empty()) {
        options.store = file_store_spec(directory);
        note = "auto: " + found;
    } else if (names_no_directory(options.store)) {
        note = found;
    }
    return {};
}

}  // namespace

std::span<const OptionRow> option_rows() {
    static const std::array<OptionRow, kOptionCount> rows = {{
#define OPTION(type, name, key, default_text, rule, doc)                          \
    {OptionId::name,         #key,           default_text, (rule).allowed(), doc, \
     environment_name(#key), flag_name(#key)},
#include "config/options.def"
#undef OPTION
    }};
    return rows;
}

std::vector<std::string> engine_names() {
    std::vector<std::string> names;
    const auto count = std::count(kEngineNames.begin(), kEngineNames.end(), '|');
    for (size_t i = 1; i <= static_cast<size_t>(count); ++i) {
        names.emplace_back(name_at(kEngineNames, i));  // without auto
    }
    return names;
}

std::vector<std::string> unknown_variables() {
    const std::vector<std::string_view> known = known_variables();
    std::vector<std::string> unknown;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view variable(*entry);
        const std::string_view name = variable.substr(0, variable.find('='));
        if (!name.starts_with(kEnvironmentPrefix) || is_of_the_project(name)) continue;
        if (std::ranges::find(known, name) == known.end()) unknown.emplace_back(name);
    }
    return unknown;
}

Result<Options> load_options(const Overrides& overrides) {
    Options options;
    for (const OptionRow& row : option_rows()) {
        HANARE_TRY(take(options, {row.id, std::string(row.default_text), "default"}));
    }
    HANARE_TRY(take_file(options));
    HANARE_TRY(take_environment(options));
    for (const Override& value : overrides) HANARE_TRY(take(options, value));
    note_unknown_variables(options);
    HANARE_TRY(resolve(options));
    return options;
}

std::string value_text(const Options& options, OptionId id) {
    switch (id) {
#define OPTION(type, name, key, default_text, rule, doc) \
    case OptionId::name: return (rule).format(options.name);
#include "config/options.def"
#undef OPTION
    }
    return {};
}

}  // namespace hanare::config
