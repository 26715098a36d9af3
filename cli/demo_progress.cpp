// SPDX-License-Identifier: Apache-2.0
#include "cli/demo_progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "bench/table.hpp"

namespace hanare::cli {
namespace {

constexpr int kBarWidth = 30;

}  // namespace

Progress::Progress() : terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { clear(); }

void Progress::begin(const std::string& label, uint64_t bytes) {
    label_ = label;
    bytes_ = bytes;
    start_ = std::chrono::steady_clock::now();
    if (terminal_) {
        draw(0);
    } else {
        std::fprintf(stderr, "%s\n", label_.c_str());
    }
}

void Progress::update(double fraction) {
    if (terminal_) draw(std::clamp(fraction, 0.0, 1.0));
}

void Progress::draw(double fraction) {
    const int full = static_cast<int>(fraction * kBarWidth);
    const std::string bar = std::string(static_cast<size_t>(full), '#') +
                            std::string(static_cast<size_t>(kBarWidth - full), '.');
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
    std::string rate;
    if (bytes_ > 0 && fraction > 0 && elapsed.count() > 0.05) {
        rate = bench::format_rate(static_cast<double>(bytes_) * fraction / elapsed.count());
    }
    std::fprintf(stderr, "\r\033[K%-28s [%s] %3d %%  %s", label_.c_str(), bar.c_str(),
                 static_cast<int>(fraction * 100), rate.c_str());
    std::fflush(stderr);
    drawn_ = true;
}

void Progress::clear() {
    if (drawn_) std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
    drawn_ = false;
}

}  // namespace hanare::cli
