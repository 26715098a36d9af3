// SPDX-License-Identifier: Apache-2.0
//
// Runs GNU sort on one text, plainly or under `hanare run`, under the conditions of one system of
// `hanare demo sort`, and undoes these afterwards, whatever happened.  Used by the main thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bench/sort_report.hpp"
#include "bench/text_corpus.hpp"
#include "bench/text_lines.hpp"
#include "cli/demo_progress.hpp"
#include "sys/file.hpp"
#include "sys/guardian.hpp"
#include "sys/measured_program.hpp"

namespace hanare::cli {

struct SortSetting {
    std::string sort_path;
    std::string directory;  // of all files
    bench::CorpusOrder order = bench::CorpusOrder::kRuns;
    uint64_t text_bytes = 0;
    uint64_t buffer_bytes = 0;  // sort's
    int text = -1;              // read from its beginning by every run
    bench::LineBag bag;         // of the text
    // Known once sort has run plainly.
    uint64_t limit_bytes = 0;
    uint64_t plain_peak_bytes = 0;
    std::optional<bench::TextCheck> expected;

    std::vector<std::string> run_flags;  // of `hanare run`, --local excepted
    std::optional<sys::UserIds> user;    // who runs sort; none for ourselves
    sys::Guardian* guardian = nullptr;   // undoes what is made here if this process is killed
    uint32_t patience_s = 0;
};

struct SortOutcome {
    bench::SortRun run;
    std::optional<bench::TextCheck> check;  // of the result of a run that ended well
    bool is_left_out = false;
    bool is_interrupted = false;
    std::string error;               // why it is a failure of the demo: a wrong result
    std::vector<std::string> notes;  // why it was left out, what it said
};

SortOutcome run_sort(const std::string& system, const std::string& label,
                     const SortSetting& setting, int interrupt_fd, Progress& progress);

// Whether `hanare run` works for that user, who may not reach what we reach; empty, or why not.
std::string try_as_user(const sys::UserIds& user, const SortSetting& setting, int interrupt_fd);

// INVALID_ARGUMENT when this is not GNU sort.
Result<void> check_gnu_sort(const SortSetting& setting, int interrupt_fd);

}  // namespace hanare::cli
