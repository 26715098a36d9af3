// SPDX-License-Identifier: Apache-2.0
//
// The same MPI program as processes and as tasks of a space takes turns, a job for each round; a
// ratio is the median of those by round.
#include "cli/bench_space.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <vector>

#include "bench/record.hpp"
#include "bench/statistics.hpp"
#include "bench/table.hpp"
#include "cli/commands.hpp"
#include "cli/json_file.hpp"
#include "cli/worker_lines.hpp"
#include "config/rules.hpp"
#include "sys/become_program.hpp"
#include "sys/child.hpp"
#include "sys/program_file.hpp"

namespace hanare::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::minutes kPatience{3};  // for the next line of a job
constexpr config::Range kRoundsAllowed(1, 99);
constexpr config::Range kRanksAllowed(2, 128);
constexpr const char* kModes[] = {"plain", "space"};
constexpr const char* kPairs = "pingpong";
constexpr const char* kCollectives = "bcast,allreduce,alltoall";
constexpr const char* kTables = "tables";

struct Mpi {
    const char* name;
    const char* program;
    const char* headers_package;
    const char* launcher;
    const char* launcher_package;
};
constexpr Mpi kMpis[] = {
    {"openmpi", "hanare-bench-space-openmpi", "libopenmpi-dev", "mpirun.openmpi", "openmpi-bin"},
    {"mpich", "hanare-bench-space-mpich", "libmpich-dev", "mpiexec.mpich", "mpich"},
};

fs::path own_directory() {
    std::error_code ignored;
    return fs::read_symlink("/proc/self/exe", ignored).parent_path();
}

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
    std::vector<const Mpi*> mpis;
    std::vector<uint64_t> ranks;  // of collectives and tables
    int rounds = 0;
};

Result<std::vector<const Mpi*>> choose_mpis(const std::optional<std::string>& list) {
    std::vector<const Mpi*> chosen;
    std::string obstacles;
    for (const std::string& name : list ? split_list(*list) : std::vector<std::string>()) {
        const auto is_it = [&](const Mpi& mpi) { return name == mpi.name; };
        if (std::ranges::any_of(kMpis, is_it)) continue;
        return config::bad_value("--mpi", name, "is not known", "openmpi and mpich");
    }
    for (const Mpi& mpi : kMpis) {
        if (list && std::ranges::count(split_list(*list), mpi.name) == 0) continue;
        if (access((own_directory() / mpi.program).c_str(), X_OK) != 0) {
            obstacles += bench::format("%s was not built; install %s and build Hanare again; ",
                                       mpi.program, mpi.headers_package);
        } else if (!sys::find_program(mpi.launcher)) {
            obstacles +=
                bench::format("%s is not there; install %s; ", mpi.launcher, mpi.launcher_package);
        } else {
            chosen.push_back(&mpi);
        }
    }
    if (!obstacles.empty()) std::fprintf(stderr, "hanare: %s\n", obstacles.c_str());
    if (!chosen.empty()) return chosen;
    return fail(HANARE_STATUS_INVALID_ARGUMENT,
                "--mpi: nothing to measure; there are openmpi and mpich, where they are installed");
}

Result<Series> make_series(const SpaceBenchFlags& flags) {
    Series series;
    HANARE_TRY_ASSIGN(series.mpis, choose_mpis(flags.mpis));
    HANARE_TRY_ASSIGN(
        const uint64_t rounds,
        kRoundsAllowed.parse("--rounds", flags.rounds.value_or(flags.quick ? "2" : "7")));
    series.rounds = static_cast<int>(rounds);
    for (const std::string& text :
         split_list(flags.ranks.value_or(flags.quick ? "4" : "2,16,64"))) {
        HANARE_TRY_ASSIGN(const uint64_t ranks, kRanksAllowed.parse("--ranks", text));
        series.ranks.push_back(ranks);
    }
    return series;
}

Result<void> read_lines(WorkerLines& lines, const Key& which, int mode,
                        std::map<Key, Values>& all) {
    size_t count = 0;
    for (std::string line;; ++count) {
        switch (lines.next(WorkerLines::Clock::now() + kPatience, line)) {
            case WorkerLines::Next::kClosed:
                if (count > 0) return {};
                return fail(HANARE_STATUS_INTERNAL, "%s, %s: the job has ended without a result",
                            which.mpi.c_str(), kModes[mode]);
            case WorkerLines::Next::kInterrupted: return fail(HANARE_STATUS_BUSY, "interrupted");
            case WorkerLines::Next::kTooSlow:
                return fail(HANARE_STATUS_TIMEOUT, "%s, %s: the job says nothing",
                            which.mpi.c_str(), kModes[mode]);
            case WorkerLines::Next::kLine: break;
        }
        char name[32] = "";
        unsigned long long bytes = 0;
        double value = 0;
        if (std::sscanf(line.c_str(), "%31s %llu %lf", name, &bytes, &value) != 3) {
            return fail(HANARE_STATUS_INTERNAL, "%s, %s: %.100s", which.mpi.c_str(), kModes[mode],
                        line.c_str());
        }
        Key key = which;
        key.name = name;
        key.bytes = bytes;
        all[key].by_mode[mode].push_back(value);
    }
}

Result<void> run_job(const Mpi& mpi, uint64_t ranks, const char* cases, int mode,
                     std::map<Key, Values>& all, const sys::Interrupt& interrupt) {
    const std::string job = bench::format("%s:%s:%llu:%s", mpi.name, kModes[mode],
                                          static_cast<unsigned long long>(ranks), cases);
    HANARE_TRY_ASSIGN(sys::Child child,
                      sys::Child::start({"hanare", "bench", "space", "--job", job}));
    WorkerLines lines(child.output_fd(), interrupt.fd());
    HANARE_TRY(
        read_lines(lines, {.mpi = mpi.name, .ranks = ranks, .name = {}, .bytes = 0}, mode, all));
    HANARE_TRY_ASSIGN(const int status, child.wait());
    if (status == 0) return {};
    return fail(HANARE_STATUS_INTERNAL, "%s: %s", job.c_str(),
                sys::describe_wait_status(status).c_str());
}

Result<void> run_round(const Series& series, int round, std::map<Key, Values>& all,
                       const sys::Interrupt& interrupt) {
    const auto both = [&](const Mpi& mpi, uint64_t ranks, const char* cases) -> Result<void> {
        for (int turn = 0; turn < 2; ++turn) {
            HANARE_TRY(run_job(mpi, ranks, cases, (turn + round) & 1, all, interrupt));
        }
        return {};
    };
    for (const Mpi* const mpi : series.mpis) {
        HANARE_TRY(both(*mpi, 2, kPairs));
        for (const uint64_t ranks : series.ranks) {
            HANARE_TRY(both(*mpi, ranks, kCollectives));
            // Counts, not times.
            if (round == 0) HANARE_TRY(both(*mpi, ranks, kTables));
        }
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

std::string shown(const Key& key, double value) {
    return key.name == kTables ? bench::format("%.1f MiB", value / 1024)
                               : bench::format("%.2f us", value);
}

void print_table(const std::map<Key, Values>& all) {
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    bench::Table table({"mpi", "case", "ranks", "bytes", "plain", "space", "plain / space", ""});
    for (const auto& [key, values] : all) {
        const bool shares = key.name != kTables && static_cast<long>(key.ranks) > processors;
        table.add_row({key.mpi, key.name, std::to_string(key.ranks), std::to_string(key.bytes),
                       shown(key, bench::summarize(values.by_mode[0]).median),
                       shown(key, bench::summarize(values.by_mode[1]).median),
                       bench::format_ratio(ratio_of(values)),
                       shares ? "more ranks than processors" : ""});
    }
    std::printf(
        "MPI between processes, and between tasks of one space; medians of rounds in turns.\n"
        "pingpong: one way; tables: page tables of all ranks, a shared window touched by all.\n\n"
        "%s",
        table.text().c_str());
}

std::vector<bench::Record> records_of(const std::map<Key, Values>& all) {
    std::vector<bench::Record> records;
    for (const auto& [key, values] : all) {
        const nlohmann::json params = {
            {"mpi", key.mpi}, {"ranks", key.ranks}, {"bytes", key.bytes}};
        const bool is_tables = key.name == kTables;
        for (int mode = 0; mode < 2; ++mode) {
            records.push_back({"space", key.name, kModes[mode], is_tables ? "page_tables" : "time",
                               is_tables ? "KiB" : "us", bench::summarize(values.by_mode[mode]),
                               params});
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

// This process becomes the launcher.
Error become_job(const std::string& text) {
    const size_t first = text.find(':');
    const size_t second = text.find(':', first + 1);
    const size_t third = text.find(':', second + 1);
    const auto* const mpi = std::ranges::find_if(
        kMpis, [&](const Mpi& each) { return text.substr(0, first) == each.name; });
    if (third == text.npos || mpi == std::end(kMpis)) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "--job: only the bench itself may use it")
            .error();
    }
    const auto launcher = sys::find_program(mpi->launcher);
    if (!launcher) return launcher.error();
    const std::string mode = text.substr(first + 1, second - first - 1);
    std::vector<std::string> arguments = {*launcher, "-n",
                                          text.substr(second + 1, third - second - 1)};
    if (mpi == &kMpis[0]) {
        arguments.insert(arguments.end(), {"--oversubscribe", "--mca", "plm", "isolated"});
        if (geteuid() == 0) arguments.emplace_back("--allow-run-as-root");
    }
    if (mode == kModes[1]) {
        const fs::path root = own_directory() / "hanare-space-root";
        arguments.insert(arguments.end(), {root.string(), "exec"});
        setenv("HANARE_SPACE_VERBOSE", "1", 1);
    }
    arguments.insert(arguments.end(), {(own_directory() / mpi->program).string(), mode});
    for (const std::string& name : split_list(text.substr(third + 1))) arguments.push_back(name);
    return sys::become_program(arguments, SIGTERM);
}

}  // namespace

int run_bench_space(const SpaceBenchFlags& flags) {
    if (flags.job) return report(become_job(*flags.job));
    return run_interruptible(
        "bench space", [&](const sys::Interrupt& interrupt) { return measure(flags, interrupt); });
}

}  // namespace hanare::cli
