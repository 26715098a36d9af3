// SPDX-License-Identifier: Apache-2.0
//
// The same MPI program as processes and as tasks of a space takes turns, a job for each round; a
// ratio is the median of those by round.
#include "cli/bench_space.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <span>
#include <vector>

#include "bench/record.hpp"
#include "bench/statistics.hpp"
#include "bench/table.hpp"
#include "cli/bench_space_hpcc.hpp"
#include "cli/bench_space_job.hpp"
#include "cli/bench_space_start.hpp"
#include "cli/commands.hpp"
#include "cli/json_file.hpp"
#include "cli/worker_lines.hpp"
#include "config/rules.hpp"
#include "sys/child.hpp"
#include "sys/program_file.hpp"
#include "sys/temporary_folder.hpp"

namespace hanare::cli {
namespace {

constexpr std::chrono::minutes kPatience{5};  // for the next line of a job
constexpr config::Range kRoundsAllowed(1, 99);
constexpr config::Range kRanksAllowed(2, 128);
constexpr const char* kCollectives = "bcast,allreduce,alltoall";
constexpr const char* kMemory = "memory";
constexpr const char* kNoMpi = "-";

// What can be left out.
constexpr const char* kGroups[] = {"pairs", "collectives", "memory",
                                   "start", "fork",        "applications"};
constexpr const char* kQuickGroups = "pairs,collectives,memory,start";

// NPB, of the class that each is built with.  MPICH's ranks wait busily for a processor.
struct Application {
    const char* name;
    uint64_t ranks;
    bool is_for_mpich;
};
constexpr Application kApplications[] = {{"npb-is", 2, true},
                                         {"npb-cg", 2, true},
                                         {"npb-ft", 2, true},
                                         {"npb-mg", 2, true},
                                         {"npb-sp", 4, false}};
constexpr uint64_t kForkRanks = 5;

// What is measured of a job, in the order in which it comes.
struct Key {
    std::string mpi;
    uint64_t ranks = 0;
    std::string name;
    uint64_t bytes = 0;
    auto operator<=>(const Key&) const = default;
};
struct Values {
    std::vector<double> by_mode[2];
};

struct Series {
    std::vector<const SpaceBenchMpi*> mpis;
    std::vector<std::string> groups;
    std::vector<uint64_t> ranks;               // of collectives and memory
    std::optional<sys::TemporaryFolder> hpcc;  // where it runs, if it does
    int rounds = 0;

    bool has(const char* group) const { return std::ranges::count(groups, group) > 0; }
};

Result<std::vector<std::string>> choose(const char* flag, const std::string& list,
                                        std::span<const char* const> allowed) {
    std::vector<std::string> chosen = split_list(list);
    std::string names;
    for (const char* const each : allowed) names += (names.empty() ? "" : ", ") + std::string(each);
    for (const std::string& name : chosen) {
        if (std::ranges::count(allowed, name) == 0) {
            return config::bad_value(flag, name, "is not known", names);
        }
    }
    return chosen;
}

Result<std::vector<const SpaceBenchMpi*>> choose_mpis(const std::optional<std::string>& list) {
    const auto mpis = space_bench_mpis();
    std::vector<const char*> names;
    for (const SpaceBenchMpi& mpi : mpis) names.push_back(mpi.name);
    HANARE_TRY_ASSIGN(const auto asked, choose("--mpi", list.value_or("openmpi,mpich"), names));
    std::vector<const SpaceBenchMpi*> chosen;
    std::string obstacles;
    for (const SpaceBenchMpi& mpi : mpis) {
        if (std::ranges::count(asked, mpi.name) == 0) continue;
        if (access(space_bench_program(mpi, kMemory).c_str(), X_OK) != 0) {
            obstacles += bench::format("%s was not built; install %s and build Hanare again; ",
                                       space_bench_program(mpi, kMemory).filename().c_str(),
                                       mpi.headers_package);
        } else if (!sys::find_program(mpi.launcher)) {
            obstacles +=
                bench::format("%s is not there; install %s; ", mpi.launcher, mpi.launcher_package);
        } else {
            chosen.push_back(&mpi);
        }
    }
    if (!obstacles.empty()) std::fprintf(stderr, "hanare: %s\n", obstacles.c_str());
    return chosen;
}

Result<Series> make_series(const SpaceBenchFlags& flags) {
    Series series;
    std::string all;
    for (const char* const group : kGroups) all += (all.empty() ? "" : ",") + std::string(group);
    HANARE_TRY_ASSIGN(
        series.groups,
        choose("--cases", flags.cases.value_or(flags.quick ? kQuickGroups : all), kGroups));
    HANARE_TRY_ASSIGN(
        const uint64_t rounds,
        kRoundsAllowed.parse("--rounds", flags.rounds.value_or(flags.quick ? "2" : "7")));
    series.rounds = static_cast<int>(rounds);
    for (const std::string& text :
         split_list(flags.ranks.value_or(flags.quick ? "4" : "2,16,64"))) {
        HANARE_TRY_ASSIGN(const uint64_t ranks, kRanksAllowed.parse("--ranks", text));
        series.ranks.push_back(ranks);
    }
    // These tell what is missing, after what is wrong.
    HANARE_TRY_ASSIGN(series.mpis, choose_mpis(flags.mpis));
    if (series.mpis.empty() && !series.has("start")) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "--mpi: nothing to measure; there are openmpi and mpich, where they are "
                    "installed");
    }
    const bool has_open_mpi = std::ranges::count(series.mpis, &space_bench_mpis()[0]) > 0;
    if (series.has("applications") && has_open_mpi) {
        HANARE_TRY_ASSIGN(series.hpcc, make_hpcc_folder());
    }
    return series;
}

// A case and what it took; nullopt: the line is for people.
struct Line {
    std::string name;
    uint64_t bytes = 0;
    double value = 0;
};
std::optional<Line> parse_line(const std::string& text, bool is_application) {
    Line line;
    char name[32] = "";
    unsigned long long bytes = 0;
    if (is_application && !text.starts_with("result: ")) {
        const auto value = hpcc_time(text);
        if (!value) return std::nullopt;
        return Line{value->first, 0, value->second};
    }
    if (is_application) {
        const int found =
            std::sscanf(text.c_str(), "result: program=%31s class=%*s ranks=%*u seconds=%lf", name,
                        &line.value);
        if (found != 2 || !text.ends_with(" verified=yes")) return std::nullopt;
        line.name = std::string("npb-") + name;
        return line;
    }
    if (std::sscanf(text.c_str(), "%31s %llu %lf", name, &bytes, &line.value) != 3) {
        return std::nullopt;
    }
    line.name = name;
    line.bytes = bytes;
    return line;
}

Result<void> read_lines(WorkerLines& lines, const Key& which, bool is_application, int mode,
                        std::map<Key, Values>& all) {
    size_t count = 0;
    for (std::string text;;) {
        switch (lines.next(WorkerLines::Clock::now() + kPatience, text)) {
            case WorkerLines::Next::kClosed:
                if (count > 0) return {};
                return fail(HANARE_STATUS_INTERNAL, "%s, %s: the job has ended without a result",
                            which.mpi.c_str(), kSpaceBenchModes[mode]);
            case WorkerLines::Next::kInterrupted: return fail(HANARE_STATUS_BUSY, "interrupted");
            case WorkerLines::Next::kTooSlow:
                return fail(HANARE_STATUS_TIMEOUT, "%s, %s: the job says nothing",
                            which.mpi.c_str(), kSpaceBenchModes[mode]);
            case WorkerLines::Next::kLine: break;
        }
        const auto line = parse_line(text, is_application);
        if (!line) continue;
        ++count;
        Key key = which;
        key.name = line->name + which.name;
        key.bytes = line->bytes;
        all[key].by_mode[mode].push_back(line->value);
    }
}

// `way` is the suffix that its results get.
Result<void> run_job(const SpaceBenchMpi& mpi, uint64_t ranks, const std::string& cases,
                     const char* way, int mode, std::map<Key, Values>& all,
                     const sys::Interrupt& interrupt) {
    const std::string job = space_job_text(mpi, mode, ranks, cases + way);
    HANARE_TRY_ASSIGN(sys::Child child,
                      sys::Child::start({"hanare", "bench", "space", "--job", job}));
    WorkerLines lines(child.output_fd(), interrupt.fd());
    const Key which = {.mpi = mpi.name, .ranks = ranks, .name = way, .bytes = 0};
    HANARE_TRY(read_lines(lines, which, is_application(cases), mode, all));
    HANARE_TRY_ASSIGN(const int status, child.wait());
    if (status == 0) return {};
    return fail(HANARE_STATUS_INTERNAL, "%s: %s", job.c_str(),
                sys::describe_wait_status(status).c_str());
}

Result<void> run_round(const Series& series, int round, std::map<Key, Values>& all,
                       const sys::Interrupt& interrupt) {
    const auto both = [&](const SpaceBenchMpi& mpi, uint64_t ranks, const std::string& cases,
                          const char* way = "") -> Result<void> {
        for (int turn = 0; turn < 2; ++turn) {
            HANARE_TRY(run_job(mpi, ranks, cases, way, (turn + round) & 1, all, interrupt));
        }
        return {};
    };
    for (const SpaceBenchMpi* const mpi : series.mpis) {
        for (const SpaceBenchWay& way : space_bench_ways()) {
            if (series.has("pairs")) HANARE_TRY(both(*mpi, 2, "pingpong", way.suffix));
        }
        for (const uint64_t ranks : series.ranks) {
            if (series.has("collectives")) HANARE_TRY(both(*mpi, ranks, kCollectives));
            // Counts, not times.
            if (series.has("memory") && round == 0) HANARE_TRY(both(*mpi, ranks, kMemory));
        }
        for (const Application& application : kApplications) {
            if (!series.has("applications") ||
                (mpi != &space_bench_mpis()[0] && !application.is_for_mpich)) {
                continue;
            }
            HANARE_TRY(both(*mpi, application.ranks, application.name));
        }
        if (series.hpcc && mpi == &space_bench_mpis()[0]) {
            HANARE_TRY(both(*mpi, 2, hpcc_case(*series.hpcc)));
        }
        if (series.has("fork")) HANARE_TRY(both(*mpi, kForkRanks, "fork"));
    }
    for (int turn = 0; turn < 2 && series.has("start"); ++turn) {
        const int mode = (turn + round) & 1;
        HANARE_TRY_ASSIGN(const double us, time_of_starts_us(mode == 1));
        all[{kNoMpi, 1, "start", 0}].by_mode[mode].push_back(us);
    }
    return {};
}

double ratio_of(const Values& values) {
    std::vector<double> ratios;
    const size_t rounds = std::min(values.by_mode[0].size(), values.by_mode[1].size());
    for (size_t i = 0; i < rounds; ++i) {
        ratios.push_back(values.by_mode[0][i] / values.by_mode[1][i]);
    }
    return bench::summarize(std::move(ratios)).median;
}

// What a case's values are: its metric and unit.
struct Measure {
    const char* metric;
    const char* unit;
    bool is_time;
};
Measure measure_of(const Key& key) {
    if (key.name.ends_with("_tables")) return {"page_tables", "KiB", false};
    if (key.name.ends_with("_memory")) return {"memory", "KiB", false};
    if (key.name.starts_with("npb-") || key.name.starts_with("hpcc-")) return {"time", "s", true};
    return {"time", "us", true};
}

std::string shown(const Key& key, double value) {
    const Measure measure = measure_of(key);
    return measure.is_time ? bench::format("%.2f %s", value, measure.unit)
                           : bench::format("%.1f MiB", value / 1024);
}

void print_table(const std::map<Key, Values>& all) {
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    bench::Table table({"mpi", "case", "ranks", "bytes", "plain", "space", "plain / space", ""});
    for (const auto& [key, values] : all) {
        const bool shares = measure_of(key).is_time && key.name != "fork" &&
                            static_cast<long>(key.ranks) > processors;
        table.add_row({key.mpi, key.name, std::to_string(key.ranks), std::to_string(key.bytes),
                       shown(key, bench::summarize(values.by_mode[0]).median),
                       shown(key, bench::summarize(values.by_mode[1]).median),
                       bench::format_ratio(ratio_of(values)),
                       shares ? "more ranks than processors" : ""});
    }
    std::printf(
        "MPI between processes, and between tasks of one space; medians of rounds in turns.\n"
        "pingpong: one way, as MPI sends it, through shared memory (eager), from memory to memory\n"
        "(rendezvous); tables, memory: of all ranks, after an exchange of all with all, and with\n"
        "a shared window touched by all; start: of a program that ends at once, until its end;\n"
        "fork: of one rank, while the others have 256 MiB each.\n\n"
        "%s",
        table.text().c_str());
}

std::vector<bench::Record> records_of(const std::map<Key, Values>& all) {
    std::vector<bench::Record> records;
    for (const auto& [key, values] : all) {
        const nlohmann::json params = {
            {"mpi", key.mpi}, {"ranks", key.ranks}, {"bytes", key.bytes}};
        const Measure measure = measure_of(key);
        for (int mode = 0; mode < 2; ++mode) {
            records.push_back({"space", key.name, kSpaceBenchModes[mode], measure.metric,
                               measure.unit, bench::summarize(values.by_mode[mode]), params});
        }
    }
    return records;
}

Result<void> measure(const SpaceBenchFlags& flags, const sys::Interrupt& interrupt) {
    HANARE_TRY_ASSIGN(const Series series, make_series(flags));
    HANARE_TRY_ASSIGN(JsonFile json, JsonFile::open(flags.json));
    std::map<Key, Values> all;
    for (int round = 0; round < series.rounds; ++round) {
        std::fprintf(stderr, "round %d of %d\n", round + 1, series.rounds);
        HANARE_TRY(run_round(series, round, all, interrupt));
    }
    print_table(all);
    return json.write(records_of(all));
}

}  // namespace

int run_bench_space(const SpaceBenchFlags& flags) {
    if (flags.job) return report(become_space_job(*flags.job));
    return run_interruptible(
        "bench space", [&](const sys::Interrupt& interrupt) { return measure(flags, interrupt); });
}

}  // namespace hanare::cli
