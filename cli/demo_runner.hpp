// SPDX-License-Identifier: Apache-2.0
//
// Runs one system of `hanare demo` in a process of its own, under the conditions it is to have, and
// undoes these conditions afterwards, whatever happened.  Used by the main thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bench/demo_plan.hpp"
#include "bench/demo_report.hpp"
#include "cli/demo_progress.hpp"
#include "cli/demo_worker.hpp"
#include "sys/guardian.hpp"

namespace hanare::cli {

struct DemoSetting {
    bench::DemoPlan plan;
    DemoJob job;                        // all but system and cgroup
    std::vector<double> reference;      // y as it must be
    sys::Guardian* guardian = nullptr;  // undoes what is made here if this process is killed
    uint32_t rounds = 0;
    uint32_t patience_s = 0;  // for systems other than hanare
};

// How a system's run ended.  `run` counts only when kDone.
struct DemoOutcome {
    enum class Kind {
        kDone,
        kLeftOut,      // it cannot run here: `text` says why
        kFailed,       // it did not finish
        kWrong,        // its result is not the reference's
        kInterrupted,  // a signal asked us to stop
    };
    Kind kind = Kind::kFailed;
    std::string text{};
    std::string note{};  // about a run that is done
    bench::DemoRun run{};
};

DemoOutcome run_demo_system(const std::string& system, const std::string& label,
                            const DemoSetting& setting, int interrupt_fd, Progress& progress);

}  // namespace hanare::cli
