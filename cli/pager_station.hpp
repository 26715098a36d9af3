// SPDX-License-Identifier: Apache-2.0
//
// One system of `hanare bench pager`: its worker process and the conditions it runs under (memory
// cgroup, swap), which are undone when the station closes, whatever happened.  Used by the main
// thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bench/pager_plan.hpp"
#include "cli/conditions.hpp"
#include "cli/pager_worker.hpp"
#include "cli/worker_lines.hpp"
#include "sys/child.hpp"
#include "sys/guardian.hpp"

namespace hanare::cli {

// A system as the command line names it.
struct PagerSystem {
    std::string name;  // "mmap", "hanare:sigbus-copy"
    std::string kind;
    std::string engine{};  // hanare's; empty: the common one

    bool is_hanare() const { return kind == "hanare"; }
    bool swaps() const { return kind == "swap" || kind == "zram"; }
    bool is_limited() const { return kind != "plain" && kind != "device"; }
};

struct PagerSetting {
    bench::PagerPlan plan;
    PagerJob job;  // all but system, kind, threads, seed and cgroup
    int interrupt_fd = -1;
    sys::Guardian* guardian = nullptr;  // undoes what is made here if this process is killed
};

// What came of a request.
struct PagerReply {
    enum class Kind {
        kDone,
        kLeftOut,  // it cannot run here: `text` says why
        kFailed,   // it did not do what it should
        kWrong,    // it read a wrong value
        kInterrupted,
    };
    Kind kind = Kind::kFailed;
    std::string text{};
    std::vector<PagerResult> results{};

    bool is_done() const { return kind == Kind::kDone; }
};

class PagerStation {
public:
    PagerStation(const PagerSystem& system, const PagerSetting& setting)
        : system_(system), setting_(setting) {}
    ~PagerStation() { close(); }
    PagerStation(const PagerStation&) = delete;
    PagerStation& operator=(const PagerStation&) = delete;

    const PagerSystem& system() const { return system_; }
    bool is_open() const { return child_.has_value(); }
    // Makes the conditions and starts the worker; returns when its memory is there.
    PagerReply open(int threads, uint64_t seed);
    PagerReply prepare(bench::PagerCase which);
    PagerReply measure(bench::PagerCase which);
    // Ends the worker and undoes the conditions.
    void close();

    // About a station that works, or after close(): what could not be done or undone, and what is
    // worth knowing.
    const std::vector<std::string>& notes() const { return notes_; }

private:
    Result<void> make_conditions(PagerJob& job);
    sys::MemoryCgroup* cgroup() { return conditions_->cgroup(); }
    PagerReply ask(const nlohmann::json& command);
    PagerReply await(const char* expected);
    PagerReply ended();

    PagerSystem system_;
    const PagerSetting& setting_;
    std::vector<std::string> notes_;
    std::optional<Conditions> conditions_;
    std::optional<sys::Child> child_;
    std::optional<WorkerLines> lines_;
};

}  // namespace hanare::cli
