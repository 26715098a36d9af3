// SPDX-License-Identifier: Apache-2.0
#include "cli/run_environment.hpp"

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <map>

namespace hanare::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibraryName = "libhanare-run.so";
constexpr const char* kLibraryVariable = "HANARE_RUN_LIBRARY";
// Where LD_PRELOAD ends a name.
constexpr const char* kSeparators = " :";

std::vector<fs::path> library_places() {
    std::error_code ignored;
    const fs::path directory = fs::read_symlink("/proc/self/exe", ignored).parent_path();
    return {directory / HANARE_LIBRARY_DIRECTORY, directory.parent_path(), directory};
}

Result<std::string> usable(const fs::path& path) {
    std::error_code error;
    const std::string absolute = fs::absolute(path, error).string();
    if (error || access(absolute.c_str(), R_OK) != 0) {
        return fail_errno(HANARE_STATUS_SYSTEM, error ? error.value() : errno,
                          "cannot use the library %.150s", path.c_str());
    }
    if (absolute.find_first_of(kSeparators) != std::string::npos) {
        return fail(HANARE_STATUS_SYSTEM,
                    "LD_PRELOAD cannot name %.150s, whose path has a blank or a colon; install "
                    "Hanare elsewhere",
                    absolute.c_str());
    }
    return absolute;
}

// In front of what is there, once: below another `hanare run` it is there already.
std::string preload_list(const std::string& library, const std::string& before) {
    const bool is_first =
        before.starts_with(library) && before.find_first_of(kSeparators) == library.size();
    if (before.empty() || before == library) return library;
    return is_first ? before : library + ":" + before;
}

std::string text_for_library(const config::Options& options, config::OptionId id) {
    switch (id) {
        case config::OptionId::local_bytes: return std::to_string(options.local_bytes);
        case config::OptionId::block_bytes: return std::to_string(options.block_bytes);
        default: return config::value_text(options, id);
    }
}

}  // namespace

Result<std::string> find_run_library() {
    if (const char* const named = secure_getenv(kLibraryVariable)) return usable(named);
    for (const fs::path& place : library_places()) {
        const fs::path library = (place / kLibraryName).lexically_normal();
        auto usable_one = usable(library);
        if (usable_one || usable_one.error().os_errno != ENOENT) return usable_one;
    }
    return fail(HANARE_STATUS_SYSTEM,
                "%s, which hanare run puts into programs, is not in %.150s; install Hanare again",
                kLibraryName, library_places().front().lexically_normal().c_str());
}

std::vector<std::string> plain_environment() {
    std::vector<std::string> entries;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        entries.emplace_back(*entry);
    }
    return entries;
}

std::vector<std::string> program_environment(const config::Options& options,
                                             const RunEnvironment& wanted) {
    const char* const before = std::getenv("LD_PRELOAD");
    std::map<std::string, std::string> ours = {
        {"LD_PRELOAD", preload_list(wanted.library, before != nullptr ? before : "")},
        {"HANARE_CONFIG", ""},  // no file: its values are among these
        {"HANARE_RUN_PAGE", wanted.page}};
    for (const config::OptionRow& row : config::option_rows()) {
        ours[row.environment] = text_for_library(options, row.id);
    }
    if (!wanted.broker.empty()) ours.emplace("HANARE_RUN_BROKER", wanted.broker);
    if (wanted.verbose) ours.emplace("HANARE_RUN_VERBOSE", "1");
    std::vector<std::string> entries;
    for (std::string& entry : plain_environment()) {
        if (!ours.contains(entry.substr(0, entry.find('=')))) entries.push_back(std::move(entry));
    }
    for (const auto& [name, value] : ours) entries.push_back(name + "=" + value);
    return entries;
}

}  // namespace hanare::cli
