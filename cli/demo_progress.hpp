// SPDX-License-Identifier: Apache-2.0
//
// What a long command shows on standard error while it works: on a terminal one line that is
// redrawn, elsewhere one line per phase.  Used by one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace hanare::cli {

class Progress {
public:
    Progress();
    ~Progress();  // leaves the terminal's line empty
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    // Begins a phase; `bytes` is what it will move in the program's eyes, 0 when unknown.
    void begin(const std::string& label, uint64_t bytes);
    // How much of the phase is done, 0..1.
    void update(double fraction);
    // Removes the line, so that something else can be printed.
    void clear();

private:
    void draw(double fraction);

    bool terminal_;
    bool drawn_ = false;
    std::string label_;
    uint64_t bytes_ = 0;
    std::chrono::steady_clock::time_point start_;
};

}  // namespace hanare::cli
