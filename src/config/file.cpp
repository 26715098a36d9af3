// SPDX-License-Identifier: Apache-2.0
#include "config/file.hpp"

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

}  // namespace

Result<std::vector<FileEntry>> parse_file_text(std::string_view toml, const std::string& path) {
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
        const bool is_absent = errno == ENOENT || errno == ENOTDIR;
        return fail_errno(is_absent ? HANARE_STATUS_NOT_FOUND : HANARE_STATUS_INVALID_ARGUMENT,
                          errno, "cannot read the configuration file %s", path.c_str());
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
