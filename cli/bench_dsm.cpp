// SPDX-License-Identifier: Apache-2.0
//
// Round by round, program by program, all systems in turn, each round beginning with another one.
#include "cli/bench_dsm.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "bench/dsm_sweep.hpp"
#include "bench/table.hpp"
#include "cli/commands.hpp"
#include "cli/dsm_systems.hpp"
#include "cli/fabric_network.hpp"
#include "cli/json_file.hpp"
#include "cli/program_run.hpp"
#include "config/rules.hpp"
#include "sys/file.hpp"
#include "sys/interrupt.hpp"

namespace hanare::cli {
namespace {

namespace fs = std::filesystem;
using bench::DsmProgram;
using bench::DsmRun;
using bench::DsmSystem;

constexpr config::Range kRoundsAllowed(1, 99);
constexpr config::Range kProcessesAllowed(1, 64);
constexpr config::Range kPatienceAllowed_s(1, 86400);

struct Series {
    std::vector<DsmProgram> programs;
    std::vector<const DsmSystem*> systems;
    fs::path folder;
    unsigned processes = 0;
    unsigned rounds = 0;
    std::chrono::seconds patience{0};
    bool is_quick = false;
    bool is_veth = false;
    std::vector<DsmRun> runs;
};

// Those of the build tree that this program is from.
fs::path usual_folder() {
    std::error_code ignored;
    return fs::read_symlink("/proc/self/exe", ignored).parent_path().parent_path() / "bench/dsm";
}

Result<std::vector<const DsmSystem*>> choose_systems(const std::string& compare) {
    const std::vector<std::string> asked = split_list(compare);
    for (const std::string& name : asked) {
        if ((name == "mpi" || name == "pvm") && std::ranges::count(asked, name) == 1) continue;
        return config::bad_value("--compare", name, "is unknown or named twice", "mpi, pvm");
    }
    std::vector<const DsmSystem*> systems;
    for (const DsmSystem& system : bench::kDsmSystems) {
        const std::string form = system.form;
        const bool is_always = form == "seq" || form == "tmk";
        if (is_always || std::ranges::count(asked, form) > 0) systems.push_back(&system);
    }
    return systems;
}

Result<Series> make_series(const DsmBenchFlags& flags) {
    Series series;
    series.is_quick = flags.quick;
    std::string all;
    for (const DsmProgram& program : bench::dsm_programs()) {
        all += (all.empty() ? "" : ",") + program.name;
    }
    HANARE_TRY_ASSIGN(series.programs, bench::find_dsm_programs(flags.programs.value_or(
                                           flags.quick ? bench::kQuickDsmPrograms : all)));
    HANARE_TRY_ASSIGN(series.systems, choose_systems(flags.compare.value_or("mpi,pvm")));
    HANARE_TRY_ASSIGN(series.processes,
                      kProcessesAllowed.parse("--processes", flags.processes.value_or("2")));
    HANARE_TRY_ASSIGN(
        series.rounds,
        kRoundsAllowed.parse("--rounds", flags.rounds.value_or(flags.quick ? "1" : "5")));
    HANARE_TRY_ASSIGN(const uint64_t patience_s,
                      kPatienceAllowed_s.parse("--patience", flags.patience_s.value_or("120")));
    series.patience = std::chrono::seconds(patience_s);
    const std::string network = flags.network.value_or(kLoopback);
    if (network != kLoopback && network != kVeth) {
        return config::bad_value("--network", network, "is unknown", "loopback, veth");
    }
    series.is_veth = network == kVeth;
    series.folder = flags.folder ? fs::path(*flags.folder) : usual_folder();
    if (fs::exists(series.folder / "jacobi-tmk")) return series;
    return fail(
        HANARE_STATUS_INVALID_ARGUMENT,
        "--folder: no programs in %.150s; they are in bench/dsm where Hanare was built, and "
        "are not installed",
        series.folder.c_str());
}

class Sweep {
public:
    Sweep(Series& series, DsmSystems& systems, const sys::Interrupt& interrupt)
        : series_(series), systems_(systems), interrupt_(interrupt) {}

    Result<void> run() {
        for (unsigned round = 0; round < series_.rounds; ++round) {
            for (const DsmProgram& program : series_.programs) {
                for (size_t i = 0; i < series_.systems.size(); ++i) {
                    const size_t which = (i + round) % series_.systems.size();
                    HANARE_TRY(run_one(program, *series_.systems[which], round));
                }
            }
        }
        return {};
    }

private:
    Result<void> run_one(const DsmProgram& program, const DsmSystem& system, unsigned round) {
        if (std::string("pvm") == system.form && !program.has_pvm) return {};
        DsmRun done;
        if (std::string why = systems_.obstacle(system, program); !why.empty()) {
            done.failure = std::move(why);
        } else {
            std::fprintf(stderr, "[%u/%u] %s, %s\n", round + 1, series_.rounds,
                         program.name.c_str(), system.name);
            HANARE_TRY_ASSIGN(done, start(program, system));
        }
        done.program = program.name;
        done.system = system.name;
        done.round = static_cast<int>(round);
        series_.runs.push_back(std::move(done));
        return {};
    }

    Result<DsmRun> start(const DsmProgram& program, const DsmSystem& system) {
        sys::FileDescriptor input;
        sys::FileDescriptor output;
        for (sys::FileDescriptor* const file : {&input, &output}) {
            if (const int error = sys::open_unnamed(systems_.directory(), *file); error != 0) {
                return fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, error,
                                  "creating a file in %.150s", systems_.directory().c_str());
            }
        }
        auto launch = systems_.launch(system, program, series_.is_quick);
        launch.input = input.number();
        launch.output = output.number();
        const ProgramRun run = run_program(launch, series_.patience, interrupt_.fd());
        if (sys::Interrupt::requested()) return fail(HANARE_STATUS_BUSY, "interrupted");
        const unsigned processes = *system.medium == '\0' ? 1 : series_.processes;
        DsmRun done = bench::parse_dsm_run(output_text(output.number()), processes);
        if (run.ending == WorkerLines::Next::kTooSlow) {
            done.failure =
                bench::format("> %lld s", static_cast<long long>(series_.patience.count()));
        } else if (!run.is_good() && done.failure != "WRONG") {
            done.failure = run.last_said();
        }
        return done;
    }

    Series& series_;
    DsmSystems& systems_;
    const sys::Interrupt& interrupt_;
};

// What compares badly here may be missing; our own runs, and results, may not.
Result<void> verdict_of(const Series& series) {
    for (const DsmRun& run : series.runs) {
        const bool is_ours = run.system == "seq" || run.system.starts_with("hanare");
        if (run.failure.empty() || (!is_ours && run.failure != "WRONG")) continue;
        return fail(HANARE_STATUS_CORRUPT, "%s, %s: %.150s", run.program.c_str(),
                    run.system.c_str(), run.failure.c_str());
    }
    const auto different = bench::dsm_differences(series.runs);
    if (different.empty()) return {};
    return fail(HANARE_STATUS_CORRUPT, "%.200s", different.front().c_str());
}

Result<void> measure(const DsmBenchFlags& flags, const sys::Interrupt& interrupt) {
    HANARE_TRY_ASSIGN(Series series, make_series(flags));
    HANARE_TRY_ASSIGN(JsonFile json, JsonFile::open(flags.json));
    HANARE_TRY_ASSIGN(DsmSystems systems,
                      DsmSystems::make(series.folder, series.processes, series.is_veth, interrupt));
    HANARE_TRY(Sweep(series, systems, interrupt).run());
    std::printf(
        "%u processes, medians of %u round%s; hanare: tasks with common memory, hanare_tcp: over "
        "%s\n\n%s\n"
        "by seq, by mpi: times by those of the sequential program, of MPI over the same medium, in "
        "the same round\nmessages: what was asked of, or sent to, others while it was timed (in "
        "hanare each has an answer), without barriers;\nbytes: of data in them, either way; "
        "fetched: blocks of 4 KiB\nresults verified\n",
        series.processes, series.rounds, series.rounds == 1 ? "" : "s",
        series.is_veth ? "veth, as all of TCP" : "sockets", bench::dsm_tables(series.runs).c_str());
    HANARE_TRY(json.write(
        bench::dsm_records(series.runs, series.programs, series.is_quick, series.processes)));
    return verdict_of(series);
}

}  // namespace

int run_bench_dsm(const DsmBenchFlags& flags) {
    return run_interruptible("hanare bench dsm", [&](const sys::Interrupt& interrupt) {
        return flags.is_far_end ? DsmNetwork::be_far_end() : measure(flags, interrupt);
    });
}

}  // namespace hanare::cli
