// SPDX-License-Identifier: Apache-2.0
//
// The report of HANARE_DSM_REPORT, which task 0 writes as text when the job's tasks end: counters
// of each task, of each allocation, and of the blocks that cost most, with who writes what of them
// and by which code.  Places of code are "[FILE+0xOFFSET]", which `hanare dsm-report` turns into
// source lines; lines with tabs are tables.
#pragma once

#include <string>
#include <vector>

#include "dsm/segment.hpp"
#include "dsm/watch_notes.hpp"

namespace hanare::dsm {

// Notes of all tasks, by rank.
std::string watch_report(const std::vector<TaskNotes>& all, const std::vector<Region>& regions,
                         const Segment& segment);

}  // namespace hanare::dsm
