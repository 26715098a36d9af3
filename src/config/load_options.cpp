// SPDX-License-Identifier: Apache-2.0
//
// Options from all their sources, the file among them.
#include <algorithm>
#include <cstdlib>

#include "base/units.hpp"
#include "config/file.hpp"
#include "config/nearest.hpp"
#include "config/option_values.hpp"
#include "config/rules.hpp"
#include "config/store_spec.hpp"
#include "sys/memory_limits.hpp"

namespace hanare::config {

namespace {

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

// Few large blocks are too few for a program that is at many places in turn: decision 37.
uint64_t default_block_bytes(uint64_t local_bytes) {
    if (local_bytes < 4 * kMiB) return 64 * kKiB;
    return local_bytes < 16 * kMiB ? 128 * kKiB : 256 * kKiB;
}

// Puts what will be used in the place of "auto".
Result<void> resolve(Options& options) {
    if (options.local_bytes == 0) {
        HANARE_TRY_ASSIGN(const sys::MemoryLimit limit, sys::effective_memory_limit());
        options.local_bytes = std::max(round_down(limit.bytes / 5 * 4, kMiB), kMiB);
        options.notes[static_cast<size_t>(OptionId::local_bytes)] =
            "auto: 80 % of " + format_size(limit.bytes) + ", " + limit.origin;
    }
    if (options.block_bytes == 0) options.block_bytes = default_block_bytes(options.local_bytes);
    std::string& note = options.notes[static_cast<size_t>(OptionId::store)];
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

Result<Options> load_options(const Overrides& overrides) {
    HANARE_TRY_ASSIGN(Options options, default_options());
    HANARE_TRY(take_file(options));
    HANARE_TRY(take_environment(options));
    for (const Override& value : overrides) HANARE_TRY(take(options, value));
    note_unknown_variables(options);
    HANARE_TRY(resolve(options));
    return options;
}

}  // namespace hanare::config
