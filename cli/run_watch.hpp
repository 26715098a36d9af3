// SPDX-License-Identifier: Apache-2.0
//
// The page that `hanare run` shares with its programs (telemetry/run_page.hpp), and the account
// that is kept of it: what each process had, what all have together, and how that went over time.
// Whoever dies is taken out of the page here.  Used by one thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bounded_series.hpp"
#include "base/result.hpp"
#include "sys/file.hpp"
#include "sys/memory.hpp"
#include "telemetry/run_page.hpp"

namespace hanare::cli {

struct ProcessFigures {
    int process_id = 0;  // 0: none
    std::string command;
    bool has_ended = false;
#define HANARE_RUN_FIELD(name, text) uint64_t name = 0;
    HANARE_RUN_FIGURE_MAP(HANARE_RUN_FIELD)
#undef HANARE_RUN_FIELD
};

// Of all processes together.  Peaks are of the sum, and what is "adopted from" a sum of peaks.
struct RunTotals {
    uint64_t processes = 0;  // that had far memory
    uint64_t sharers = 0;    // that have a part of the budget now
    // A budget with which nothing would have been moved.
    uint64_t sufficient_bytes = 0;
#define HANARE_RUN_FIELD(name, text) uint64_t name = 0;
    HANARE_RUN_FIGURE_MAP(HANARE_RUN_FIELD)
#undef HANARE_RUN_FIELD
};

// Of one process, at one moment: where the memory of an area is (telemetry::RunMap).
struct RunMapShot {
    double elapsed_s = 0;
    int process_id = 0;
    const char* area = nullptr;
    uint64_t begin = 0;
    uint64_t bytes = 0;
    std::array<uint8_t, telemetry::RunMap::kParts> local{};
    std::array<uint8_t, telemetry::RunMap::kParts> kept{};
};

struct RunSample {
    double elapsed_s = 0;
    uint64_t far_bytes = 0;
    uint64_t local_bytes = 0;
    uint64_t read_bytes = 0;
    uint64_t written_bytes = 0;
    uint64_t wait_ns = 0;
    uint64_t faults = 0;
};

class RunWatch {
public:
    // `with_maps`: processes say where their memory is, and that is kept, too.
    static Result<RunWatch> start(uint64_t budget_bytes, bool with_maps);

    // Where processes find the page as long as we live.
    std::string page_path() const;

    // Reads the page, and takes those out whose process has ended.
    void look();
    // Puts the totals of the last look(), and the maps, on the time line.
    void note_sample(double elapsed_s, bool is_last);

    const RunTotals& totals() const { return totals_; }
    // Without those for which there was no room; the totals have them all.
    std::vector<ProcessFigures> processes() const;
    const std::vector<RunSample>& samples() const { return samples_.entries(); }
    // Those of a moment together; of the processes that used most memory then.
    const std::vector<std::vector<RunMapShot>>& maps() const { return maps_.entries(); }
    // Each becomes readable when a process ends, and is then for look().
    std::vector<int> descriptors() const;

private:
    static constexpr size_t kSamplesMax = 2000;
    static constexpr size_t kMapsMax = 240;     // moments
    static constexpr size_t kMapProcesses = 4;  // of each
    static constexpr size_t kFormerMax = 1000;

    struct Row {
        ProcessFigures last;
        telemetry::RunProcess name;  // of the process, as it is in the page
        sys::FileDescriptor process;
        bool is_unknown = false;  // it has no number here, as far as can be told
    };

    RunWatch() = default;
    void look_at(telemetry::RunChild& child) const;
    void look_at(telemetry::RunRow& shared, Row& row);
    void retire(Row& row);
    bool is_dead(Row& row, const telemetry::RunProcess& name) const;
    void take_out(telemetry::RunRow& shared);
    void add_up();
    std::vector<RunMapShot> shoot_maps(double elapsed_s) const;

    telemetry::RunProcess self_;
    sys::FileDescriptor memory_;
    sys::Mapping mapping_;
    telemetry::RunPage* page_ = nullptr;
    std::vector<Row> rows_;               // none before there is something in the page's
    std::vector<ProcessFigures> former_;  // whose row another process has now
    RunTotals left_out_;                  // of those that are not among them
    RunTotals totals_;
    BoundedSeries<RunSample> samples_{kSamplesMax};
    BoundedSeries<std::vector<RunMapShot>> maps_{kMapsMax};
};

}  // namespace hanare::cli
