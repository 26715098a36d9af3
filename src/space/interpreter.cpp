// SPDX-License-Identifier: Apache-2.0
#include "space/interpreter.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <string_view>

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
        const std::string interpreter(words.substr(0, end));
        std::vector<std::string> arguments = {interpreter};
        if (end != words.npos) arguments.emplace_back(trimmed(words.substr(end)));
        arguments.push_back(start.path);
        if (!start.arguments.empty()) {
            arguments.insert(arguments.end(), start.arguments.begin() + 1, start.arguments.end());
        }
        start.path = interpreter;
        start.arguments = std::move(arguments);
    }
}

}  // namespace hanare::space
