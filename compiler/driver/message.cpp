// SPDX-License-Identifier: Apache-2.0
#include "message.hpp"

#include <unistd.h>

namespace hanare::driver {
namespace {

std::string own_name = "hanare-cc";

void write_line(std::string line) {
    line += '\n';
    for (std::string_view rest = line; !rest.empty();) {
        const ssize_t written = write(STDERR_FILENO, rest.data(), rest.size());
        if (written <= 0) return;  // Nobody listens; the status tells.
        rest.remove_prefix(static_cast<size_t>(written));
    }
}

std::string quoted(const std::string& word) {
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-";
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
    std::string text = "'";
    for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
    return text + "'";
}

}  // namespace

void set_name(std::string_view name) { own_name = name; }
const std::string& name() { return own_name; }

void say(std::string_view text) { write_line(own_name + ": " + std::string(text)); }

int fail(std::string_view text) {
    say(text);
    return kFailed;
}

void show(const Words& command) {
    std::string line;
    for (const std::string& word : command) line += (line.empty() ? "" : " ") + quoted(word);
    write_line(line);
}

}  // namespace hanare::driver
