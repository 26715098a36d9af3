// SPDX-License-Identifier: Apache-2.0
//
// One run of one system of `hanare bench stencil`, in a process of its own and in the conditions
// that it needs.  Used by the main thread.
#pragma once

#include <chrono>
#include <set>
#include <string>

#include "base/result.hpp"
#include "bench/stencil_report.hpp"
#include "sys/guardian.hpp"
#include "sys/interrupt.hpp"

namespace hanare::cli {

struct StencilSetting {
    std::string directory;
    std::string python;  // an interpreter that may have Devito
    std::chrono::seconds patience{0};
    const sys::Interrupt& interrupt;
    sys::Guardian& guardian;
};

// What came of it.
struct StencilRun {
    enum class Kind { kDone, kLeftOut, kDoesNotFit, kFailed };
    Kind kind = Kind::kFailed;
    std::string text{};  // why not
    std::string note{};  // about the conditions
    bench::StencilOutcome outcome{};
};

// `limit_bytes`: of its memory, 0 for none.  An error is ours: nothing else can run either.
Result<StencilRun> run_stencil_system(const bench::StencilSystem& system, bench::StencilJob job,
                                      uint64_t limit_bytes, const StencilSetting& setting);

// The other process: `job` is a StencilJob as JSON.  Returns the exit status.
int run_stencil_worker(const std::string& job);

}  // namespace hanare::cli
