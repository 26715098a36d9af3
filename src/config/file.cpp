// SPDX-License-Identifier: Apache-2.0
#include "config/file.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "config/nearest.hpp"

namespace hanare::config {

namespace {

constexpr size_t kFileBytesMax = 1u << 20;  // more is certainly not a configuration

Result<std::string> text_of(const toml::node& node, const std::string& where) {
    if (const auto* text = node.as_string()) return **text;
    if (const auto* number = node.as_integer()) return std::to_string(**number);
    if (const auto* flag = node.as_boolean()) return std::string(**flag ? "true" : "false");
    return fail(HANARE_STATUS_INVALID_ARGUMENT,
                "%s is neither text, nor a whole number, nor true or false", where.c_str());
}

bool is_control(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7f;
}

// Where the text that the quote at `start` opens is closed; npos when it is not.
size_t closing_quote(std::string_view line, size_t start) {
    for (size_t i = start + 1; i < line.size(); ++i) {
        if (line[i] == '\\' && line[start] == '"') {
            ++i;
        } else if (line[i] == line[start]) {
            return i;
        }
    }
    return std::string_view::npos;
}

// What toml++ must not see: 3.3 runs into undefined behaviour on many non-ASCII characters outside
// quotes and on some broken table headers.  No option needs tables, arrays or multi-line text,
// without which every line stands alone and quotes open only where the value begins.
const char* objection(std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (std::any_of(line.begin(), line.end(), is_control)) return "a control character";
    char previous = '\0';  // the last character that is not blank
    size_t equal_signs = 0;
    for (size_t i = 0; i < line.size() && line[i] != '#'; ++i) {
        const char c = line[i];
        if (static_cast<unsigned char>(c) >= 0x80) return "a non-ASCII character outside quotes";
        if (c == '[' || c == '{') return "a table or an array";
        if (c == '"' || c == '\'') {
            if (line.substr(i, 3) == std::string(3, c)) return "multi-line text";
            if (previous != '=' || equal_signs != 1)
                return "a quote elsewhere than after the first =";
            i = closing_quote(line, i);
            if (i == std::string_view::npos) return "text without a closing quote";
        }
        if (c == '=') ++equal_signs;
        if (c != ' ' && c != '\t') previous = c;
    }
    return nullptr;
}

Result<void> check_lines(std::string_view toml, const std::string& path) {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (toml.starts_with(kByteOrderMark)) toml.remove_prefix(kByteOrderMark.size());
    for (unsigned line = 1; !toml.empty(); ++line) {
        const std::string_view text = toml.substr(0, toml.find('\n'));
        if (const char* const why = objection(text); why != nullptr) {
            return fail(HANARE_STATUS_INVALID_ARGUMENT, "file %s:%u: %s is not allowed",
                        path.c_str(), line, why);
        }
        toml.remove_prefix(std::min(text.size() + 1, toml.size()));
    }
    return {};
}

}  // namespace

Result<std::vector<FileEntry>> parse_file_text(std::string_view toml, const std::string& path) {
    HANARE_TRY(check_lines(toml, path));
    const toml::parse_result parsed = toml::parse(toml, path);
    if (!parsed) {
        const std::string_view why = parsed.error().description();
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "file %s:%u: not valid TOML: %.*s",
                    path.c_str(), parsed.error().source().begin.line, static_cast<int>(why.size()),
                    why.data());
    }
    std::vector<FileEntry> entries;
    for (const auto& [key, node] : parsed.table()) {
        FileEntry entry;
        entry.key = key.str();
        entry.line = node.source().begin.line;
        HANARE_TRY_ASSIGN(entry.text,
                          text_of(node, "file " + path + ":" + std::to_string(entry.line) +
                                            ": the value of " + in_quotes(entry.key)));
        entries.push_back(std::move(entry));
    }
    return entries;
}

Result<std::vector<FileEntry>> read_file(const std::string& path) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        const int open_errno = errno;
        // Behind a directory that this user may not search, such as an inherited $HOME of root,
        // nobody meant a file for this user.
        const bool is_hidden = open_errno == EACCES && access(path.c_str(), F_OK) != 0;
        const bool is_absent = open_errno == ENOENT || open_errno == ENOTDIR || is_hidden;
        return fail_errno(is_absent ? HANARE_STATUS_NOT_FOUND : HANARE_STATUS_INVALID_ARGUMENT,
                          open_errno, "cannot read the configuration file %s", path.c_str());
    }
    std::string text;
    char buffer[4096];
    ssize_t count = 0;
    while ((count = read(descriptor, buffer, sizeof buffer)) > 0 && text.size() <= kFileBytesMax) {
        text.append(buffer, static_cast<size_t>(count));
    }
    const int os_errno = errno;
    close(descriptor);
    if (count < 0) {
        return fail_errno(HANARE_STATUS_INVALID_ARGUMENT, os_errno,
                          "cannot read the configuration file %s", path.c_str());
    }
    if (text.size() > kFileBytesMax) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "the configuration file %s exceeds 1 MiB",
                    path.c_str());
    }
    return parse_file_text(text, path);
}

}  // namespace hanare::config
