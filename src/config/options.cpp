// SPDX-License-Identifier: Apache-2.0
#include "config/options.hpp"

#include <algorithm>
#include <cstdlib>
#include <unistd.h>

#include "base/units.hpp"
#include "config/nearest.hpp"
#include "config/option_values.hpp"
#include "config/rules.hpp"
#include "config/store_spec.hpp"
#include "sys/memory_limits.hpp"

namespace hanare::config {

namespace {

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

// Read by the build, the tests, the compiler drivers or `hanare space`, or made by `hanare run`,
// `hanare launch` or `hanare space` for their programs.
bool is_of_the_project(std::string_view name) {
    constexpr std::string_view kNames[] = {"HANARE_NO_BOOTSTRAP",  "HANARE_OS_RELEASE",
                                           "HANARE_BINARY",        "HANARE_RANK",
                                           "HANARE_SIZE",          "HANARE_RENDEZVOUS",
                                           "HANARE_HOST",          "HANARE_SECRET_FD",
                                           "HANARE_SECRET_FILE",   "HANARE_CC",
                                           "HANARE_CXX",           "HANARE_FC",
                                           "HANARE_PYTHON",        "HANARE_COMM_UCX",
                                           "HANARE_DSM_MEMORY",    "HANARE_DSM_SHARED",
                                           "HANARE_DSM_REPORT",    "HANARE_SPACE",
                                           "HANARE_SPACE_TASK",    "HANARE_SPACE_TASKS",
                                           "HANARE_SPACE_VERBOSE", "HANARE_SPACE_MAPPINGS"};
    constexpr std::string_view kPrefixes[] = {"HANARE_TEST_", "HANARE_STRESS_", "HANARE_FUZZ_",
                                              "HANARE_RUN_"};
    return std::ranges::find(kNames, name) != std::end(kNames) ||
           std::ranges::any_of(kPrefixes, [&](auto prefix) { return name.starts_with(prefix); });
}

}  // namespace

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

Result<void> take_environment(Options& options) {
    for (const OptionRow& row : option_rows()) {
        if (const char* const text = secure_getenv(row.environment.c_str()); text != nullptr) {
            HANARE_TRY(take(options, {row.id, text, "environment " + row.environment}));
        }
    }
    return {};
}

Result<Options> default_options() {
    Options options;
    for (const OptionRow& row : option_rows()) {
        HANARE_TRY(take(options, {row.id, std::string(row.default_text), "default"}));
    }
    return options;
}

std::vector<std::string_view> known_variables() {
    std::vector<std::string_view> known = {kFileVariable};
    for (const OptionRow& row : option_rows()) known.push_back(row.environment);
    return known;
}

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

Result<Options> load_from_environment() {
    HANARE_TRY_ASSIGN(Options options, default_options());
    HANARE_TRY(take_environment(options));
    if (options.local_bytes != 0 && !options.store.empty()) return options;
    return fail(HANARE_STATUS_INVALID_ARGUMENT,
                "HANARE_LOCAL and HANARE_STORE are not both set, as hanare run sets them");
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
