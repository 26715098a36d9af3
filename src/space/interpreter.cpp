// SPDX-License-Identifier: Apache-2.0
#include "space/interpreter.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "sys/file.hpp"
#include "sys/program_file.hpp"

namespace hanare::space {

namespace {

// As the kernel's.
constexpr size_t kLineBytesMax = 256;
constexpr int kDepthMax = 4;
constexpr std::string_view kBlanks = " \t";

// The first line of a text that begins so, without "#!"; empty for others.
std::string first_line(const std::string& path) {
    const sys::FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    char begin[kLineBytesMax];
    const ssize_t bytes = file.is_open() ? pread(file.number(), begin, sizeof begin, 0) : 0;
    const std::string_view text(begin, bytes > 0 ? static_cast<size_t>(bytes) : 0);
    if (!text.starts_with("#!")) return {};
    return std::string(text.substr(2, text.find('\n') - 2));
}

std::string_view trimmed(std::string_view text) {
    const size_t begin = text.find_first_not_of(kBlanks);
    if (begin == text.npos) return {};
    return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

// As a task it would become the program that it finds, which is none.
bool is_env(const std::string& interpreter, const std::string& argument) {
    return interpreter == "/usr/bin/env" && !argument.empty() && argument.front() != '-' &&
           argument.find_first_of("= \t") == argument.npos;
}

// By the PATH of who asks; empty: it is not there.
std::string find_in_path(const std::string& name, const std::vector<std::string>& environment) {
    constexpr std::string_view kPath = "PATH=";
    const auto path = std::ranges::find_if(
        environment, [&](const std::string& each) { return each.starts_with(kPath); });
    if (path == environment.end() || name.find('/') != name.npos) return {};
    std::string_view rest = std::string_view(*path).substr(kPath.size());
    while (!rest.empty()) {
        const size_t end = std::min(rest.find(':'), rest.size());
        // The working directory is the task's own.
        if (rest.front() != '/') return {};
        std::string place = std::string(rest.substr(0, end)) + "/" + name;
        std::error_code ignored;
        if (std::filesystem::is_regular_file(place, ignored) && access(place.c_str(), X_OK) == 0) {
            return place;
        }
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return {};
}

}  // namespace

Result<StartOfProgram> with_interpreter(StartOfProgram start) {
    for (int depth = 0;; ++depth) {
        const std::string privileges = sys::inspect_program(start.path).privileges;
        if (!privileges.empty()) {
            return fail(HANARE_STATUS_NOT_SUPPORTED, "%.200s: %s", start.path.c_str(),
                        privileges.c_str());
        }
        const std::string line = first_line(start.path);
        const std::string_view words = trimmed(line);
        if (words.empty()) return start;
        if (depth == kDepthMax) {
            return fail(HANARE_STATUS_LIMIT, "%.200s: interpreters of interpreters",
                        start.path.c_str());
        }
        // The rest of the line is one argument.
        const size_t end = words.find_first_of(kBlanks);
        std::string interpreter(words.substr(0, end));
        std::string argument(end == words.npos ? "" : trimmed(words.substr(end)));
        if (is_env(interpreter, argument)) {
            const std::string found = find_in_path(argument, start.environment);
            if (!found.empty()) {
                interpreter = found;
                argument.clear();
            }
        }
        std::vector<std::string> arguments = {interpreter};
        if (!argument.empty()) arguments.push_back(std::move(argument));
        arguments.push_back(start.path);
        if (!start.arguments.empty()) {
            arguments.insert(arguments.end(), start.arguments.begin() + 1, start.arguments.end());
        }
        start.path = interpreter;
        start.arguments = std::move(arguments);
    }
}

}  // namespace hanare::space
