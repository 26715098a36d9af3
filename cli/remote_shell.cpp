// SPDX-License-Identifier: Apache-2.0
#include "cli/remote_shell.hpp"

#include <filesystem>
#include <sstream>

namespace hanare::cli {
namespace {

// A word for a shell, whatever is in it.
std::string word_for_shell(std::string_view word) {
    std::string text = "'";
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + "'";
}

}  // namespace

std::vector<std::string> words_of(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    return words;
}

std::string shell_command(std::span<const std::string> words) {
    std::string command = "exec";
    for (const std::string& word : words) command += " " + word_for_shell(word);
    return command;
}

Result<std::string> own_path() {
    std::error_code error;
    const std::string path = std::filesystem::read_symlink("/proc/self/exe", error).string();
    if (!error) return path;
    return fail_errno(HANARE_STATUS_SYSTEM, error.value(), "cannot tell where hanare is");
}

}  // namespace hanare::cli
