// SPDX-License-Identifier: Apache-2.0
//
// Runs one program of bench/dlm under the conditions of one system, and undoes these afterwards,
// whatever happened.  Used by the main thread.
#pragma once

#include <cstdint>
#include <string>

#include "bench/dlm_sweep.hpp"
#include "cli/dlm_builds.hpp"
#include "cli/dlm_servers.hpp"
#include "sys/guardian.hpp"

namespace hanare::cli {

struct DlmSetting {
    DlmBuilds* builds = nullptr;
    std::string directory;  // of the file store, the swap file and outputs
    DlmServers* servers = nullptr;
    std::string engine;
    uint32_t patience_s = 0;
    sys::Guardian* guardian = nullptr;  // undoes what is made here if this process is killed
};

struct DlmOutcome {
    bench::DlmRun run;
    uint64_t data_bytes = 0;  // of the program's arrays, where it ended well
    bool is_interrupted = false;
    std::string left_out;  // why it cannot run here
};

// `data_bytes`: of its arrays, known from a plain run; not needed for one.
DlmOutcome run_dlm(const bench::DlmProgram& program, const bench::DlmPoint& point,
                   uint64_t data_bytes, const DlmSetting& setting, int interrupt_fd);

}  // namespace hanare::cli
