// SPDX-License-Identifier: Apache-2.0
//
// What `hanare run` and `hanare ps` say about a run: the last line, the line that goes on, JSON.
// Used by one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/run_watch.hpp"
#include "config/options.hpp"

namespace hanare::cli {

// What is the same from beginning to end.
struct RunSubject {
    std::vector<std::string> command;
    int program_id = 0;  // of the program; our own is that of `hanare run`
    config::Options options;
};

// "12.3 s", "3:05", "1:02:03".
std::string format_duration(double seconds);

// What the program had and what it cost; without "hanare: ".  `was_killed`: by a signal, so that
// its last figures may be a tenth of a second old.
std::string summary_line(const RunTotals& totals, bool was_killed);
std::string progress_line(const RunTotals& totals, double elapsed_s);

// `wait_status` of waitpid(2) when it has ended.
nlohmann::ordered_json run_statistics(const RunSubject& subject, const RunWatch& watch,
                                      double elapsed_s, std::optional<int> wait_status);
nlohmann::ordered_json run_timeline(const RunWatch& watch);
// Where memory was over time; shares of 255 as two hexadecimal digits each.
nlohmann::ordered_json run_maps(const RunWatch& watch);

// As text, whatever bytes names have.
std::string json_text(const nlohmann::ordered_json& json, int indent);

// Standard error while the program runs: on a terminal one line that is redrawn, elsewhere a line
// now and then.
class RunProgress {
public:
    explicit RunProgress(bool is_wanted);
    ~RunProgress() { clear(); }
    RunProgress(const RunProgress&) = delete;
    RunProgress& operator=(const RunProgress&) = delete;

    void update(const RunTotals& totals, double elapsed_s);
    void clear();

private:
    bool wanted_;
    bool terminal_;
    bool drawn_ = false;
    double next_s_;
};

}  // namespace hanare::cli
