// SPDX-License-Identifier: Apache-2.0
//
// Escape sequences: ECMA-48, and xterm's second screen, which all terminals of today know.
#include "sys/terminal.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace hanare::sys {

namespace {

constexpr const char* kSecondScreen = "\x1b[?1049h\x1b[?25l";  // without a cursor
constexpr const char* kFirstScreen = "\x1b[?25h\x1b[?1049l";

// The bytes of the first `columns` characters of UTF-8; none here is wide.
size_t bytes_of(std::string_view line, size_t columns) noexcept {
    size_t at = 0;
    for (; at < line.size(); ++at) {
        const bool begins = (static_cast<unsigned char>(line[at]) & 0xc0) != 0x80;
        if (begins && columns-- == 0) break;
    }
    return at;
}

}  // namespace

bool Terminal::is_there() {
    const char* const kind = std::getenv("TERM");
    return isatty(STDOUT_FILENO) == 1 && kind != nullptr && *kind != 0 &&
           std::string_view(kind) != "dumb";
}

Terminal::Terminal() {
    // Not from the background: that would stop the process.
    const bool is_in_front = tcgetpgrp(STDIN_FILENO) == getpgrp();
    has_keys_ = is_in_front && tcgetattr(STDIN_FILENO, &before_) == 0;
    if (has_keys_) {
        termios wanted = before_;
        wanted.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        tcsetattr(STDIN_FILENO, TCSANOW, &wanted);
    }
    std::fputs(kSecondScreen, stdout);
}

Terminal::~Terminal() {
    std::fputs(kFirstScreen, stdout);
    std::fflush(stdout);
    if (has_keys_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

ScreenSize Terminal::size() const noexcept {
    winsize size = {};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
        return {};
    }
    return {size.ws_col, size.ws_row};
}

void Terminal::show(std::string_view lines) const {
    const ScreenSize screen = size();
    std::string text = "\x1b[H";
    for (size_t row = 0; row < screen.rows && !lines.empty(); ++row) {
        const size_t end = lines.find('\n');
        const std::string_view line = lines.substr(0, end);
        if (row != 0) text += "\r\n";
        text += line.substr(0, bytes_of(line, screen.columns));
        text += "\x1b[K";
        lines = end == std::string_view::npos ? std::string_view() : lines.substr(end + 1);
    }
    text += "\x1b[J";
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

char Terminal::wait_for_key(int other, int timeout_ms) const noexcept {
    pollfd wanted[] = {{.fd = other, .events = POLLIN, .revents = 0},
                       {.fd = has_keys_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}};
    if (poll(wanted, 2, timeout_ms) <= 0 || wanted[1].revents == 0) return 0;
    char key = 0;
    return read(STDIN_FILENO, &key, 1) == 1 ? key : 'q';  // nobody is there any more
}

}  // namespace hanare::sys
