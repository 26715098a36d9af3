// SPDX-License-Identifier: Apache-2.0
//
// Round by round, case by case, each system in a process of its own (python/hanare/_bench.py), each
// round beginning with another one.
#include "cli/bench_numpy.hpp"

#include <algorithm>
#include <cstdio>
#include <set>
#include <vector>

#include "base/units.hpp"
#include "bench/memory.hpp"
#include "bench/numpy_report.hpp"
#include "bench/room.hpp"
#include "bench/table.hpp"
#include "cli/commands.hpp"
#include "cli/conditions.hpp"
#include "cli/json_file.hpp"
#include "cli/program_run.hpp"
#include "cli/python.hpp"
#include "cli/store_directory.hpp"
#include "config/rules.hpp"
#include "sys/block_device.hpp"
#include "sys/guardian.hpp"
#include "sys/interrupt.hpp"
#include "sys/temporary_folder.hpp"

namespace hanare::cli {
namespace {

using bench::NumpySample;
using config::OptionId;
using Launch = sys::MeasuredProgram::Launch;

constexpr config::Range kRoundsAllowed(1, 99);
constexpr config::Range kPatienceAllowed_s(1, 86400);
constexpr uint64_t kDataMin = 64 * kMiB;
// Of Python, NumPy and its scratch memory.  Below a limit they count, and so it is higher by that.
constexpr uint64_t kProcessBytes = 64 * kMiB;
constexpr uint64_t kLocalShare = 4;  // the arrays are so many times as large as local memory

// One case, in an interpreter that has NumPy already.
constexpr const char* kWorker =
    "import sys\n"
    "sys.path[:] = [place for place in sys.path if place]\n"
    "import time, numpy\n"
    "begin = time.perf_counter()\n"
    "import hanare\n"
    "seconds = time.perf_counter() - begin\n"
    "from hanare._bench import main\n"
    "main(seconds, *sys.argv[1:])\n";

// What --quick changes.
struct Extent {
    const char* size;
    const char* rounds;
    const char* patience_s;
};
constexpr Extent kFull = {"512M", "5", "300"};
constexpr Extent kQuick = {"128M", "1", "60"};

struct Series {
    std::vector<std::string> cases;
    std::vector<std::string> systems;
    uint64_t data_bytes = 0;
    uint64_t local_bytes = 0;
    int rounds = 0;
    uint32_t patience_s = 0;
    std::string python;
    std::string directory;
    config::Options options;
    sys::Guardian* guardian = nullptr;

    std::vector<NumpySample> samples;
    std::set<std::string> remarks;
};

Result<std::vector<std::string>> parse_cases(const std::string& list) {
    std::vector<std::string> names = split_list(list);
    for (const std::string& name : names) {
        const bool is_known = std::ranges::any_of(
            bench::numpy_cases(), [&](const auto& which) { return name == which.name; });
        if (is_known && std::ranges::count(names, name) == 1) continue;
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "--cases %s: \"%.50s\" is unknown or named twice; there are %s", list.c_str(),
                    name.c_str(), bench::numpy_case_names().c_str());
    }
    return names;
}

// Whom Hanare is compared with, and it.
Result<std::vector<std::string>> parse_systems(const std::string& list) {
    std::vector<std::string> systems = split_list(list);
    for (const std::string& name : systems) {
        const bool is_known = name == bench::kNumpyPlain || name == bench::kNumpyMemmap;
        if (is_known && std::ranges::count(systems, name) == 1) continue;
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "--compare %s: \"%.50s\" is unknown or named twice; there are plain,memmap",
                    list.c_str(), name.c_str());
    }
    systems.emplace_back(bench::kNumpyHanare);
    if (std::ranges::count(systems, bench::kNumpyPlain) > 0) {
        systems.emplace_back(bench::kNumpyFits);
    }
    return systems;
}

bool has_default(const config::Options& options, OptionId id) {
    return options.sources[static_cast<size_t>(id)] == "default";
}

Result<uint64_t> parse_data_bytes(const std::string& text) {
    HANARE_TRY_ASSIGN(const uint64_t bytes, parse_size("--size", text));
    if (bytes >= kDataMin) return bytes;
    return config::bad_value("--size", text, "is too little", "64M or more");
}

// Whose memory takes twice the arrays at most: the pool that they fit in.
Result<void> check_room(const Series& series) {
    HANARE_TRY_ASSIGN(const bench::MachineRoom room, bench::machine_room(series.directory));
    const uint64_t bytes = 2 * series.data_bytes + kProcessBytes;
    if (bytes > room.usable_memory_bytes() || bytes > room.usable_disk_bytes()) {
        return fail(HANARE_STATUS_NO_MEMORY,
                    "--size %s needs %s of memory and of %.100s; available are %s and %s",
                    format_size(series.data_bytes).c_str(), format_size(bytes).c_str(),
                    series.directory.c_str(), format_size(room.usable_memory_bytes()).c_str(),
                    format_size(room.usable_disk_bytes()).c_str());
    }
    return {};
}

Result<Series> make_series(const NumpyFlags& flags) {
    const Extent& extent = flags.quick ? kQuick : kFull;
    Series series;
    HANARE_TRY_ASSIGN(series.options, load_and_apply(*flags.overrides));
    HANARE_TRY_ASSIGN(series.cases, parse_cases(flags.cases.value_or(bench::numpy_case_names())));
    HANARE_TRY_ASSIGN(series.systems, parse_systems(flags.compare.value_or("plain,memmap")));
    HANARE_TRY_ASSIGN(series.data_bytes, parse_data_bytes(flags.size.value_or(extent.size)));
    const bool is_given = !has_default(series.options, OptionId::local_bytes);
    series.local_bytes =
        is_given ? series.options.local_bytes : round_up(series.data_bytes / kLocalShare, kMiB);
    HANARE_TRY_ASSIGN(const uint64_t rounds,
                      kRoundsAllowed.parse("--rounds", flags.rounds.value_or(extent.rounds)));
    series.rounds = static_cast<int>(rounds);
    HANARE_TRY_ASSIGN(
        const uint64_t patience_s,
        kPatienceAllowed_s.parse("--patience", flags.patience_s.value_or(extent.patience_s)));
    series.patience_s = static_cast<uint32_t>(patience_s);
    HANARE_TRY_ASSIGN(series.python, find_python(flags.python));
    HANARE_TRY_ASSIGN(series.directory, store_directory(series.options));
    HANARE_TRY(check_room(series));
    return series;
}

// How a series is run, one sample at a time.
class Runner {
public:
    Runner(Series& series, const sys::Interrupt& interrupt)
        : series_(series), interrupt_(interrupt) {}

    Result<void> run() {
        for (int round = 0; round < series_.rounds; ++round) {
            for (const std::string& case_name : series_.cases) {
                HANARE_TRY(run_case(case_name, round));
            }
        }
        return {};
    }

private:
    Result<void> run_case(const std::string& case_name, int round) {
        std::vector<std::string> systems = series_.systems;
        std::ranges::rotate(systems, systems.begin() + round % static_cast<int>(systems.size()));
        for (const std::string& system : systems) {
            ++number_;
            const bool is_hopeless =
                std::ranges::any_of(series_.samples, [&](const NumpySample& sample) {
                    return sample.case_name == case_name && sample.system == system &&
                           sample.failure.starts_with('>');
                });
            if (is_hopeless) continue;
            HANARE_TRY(run_sample(case_name, system, round));
        }
        return {};
    }

    Result<void> run_sample(const std::string& case_name, const std::string& system, int round) {
        const size_t all =
            static_cast<size_t>(series_.rounds) * series_.cases.size() * series_.systems.size();
        std::fprintf(stderr, "[%zu/%zu] %s %s\n", number_, all, case_name.c_str(), system.c_str());
        sys::FileDescriptor input;
        sys::FileDescriptor output;
        for (sys::FileDescriptor* const file : {&input, &output}) {
            if (const int error = sys::open_unnamed(series_.directory, *file); error != 0) {
                return fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, error,
                                  "creating a file in %.150s", series_.directory.c_str());
            }
        }
        // Earlier runs' data must not be written during this one.
        HANARE_TRY(sys::sync_file_system(series_.directory));
        HANARE_TRY(bench::warm_memory(limit_bytes(system)));
        // Of a worker that is killed, too, nothing stays.
        HANARE_TRY_ASSIGN(
            const sys::TemporaryFolder folder,
            sys::TemporaryFolder::make(series_.directory, "hanare-bench-numpy", series_.guardian));
        auto conditions = Conditions::make(wanted_conditions(system));
        if (!conditions) {
            series_.remarks.insert(system + " is left out: " + conditions.error().text);
            return {};
        }
        if (!conditions->note().empty()) series_.remarks.insert(conditions->note());
        Launch launch = launch_of(case_name, system, folder.path());
        launch.input = input.number();
        launch.output = output.number();
        const sys::MemoryCgroup* const cgroup = conditions->cgroup();
        if (cgroup != nullptr) launch.cgroup = cgroup->directory();
        const ProgramRun run =
            run_program(launch, std::chrono::seconds(series_.patience_s), interrupt_.fd());
        const uint64_t oom_kills = cgroup != nullptr ? cgroup->oom_kills().value_or(0) : 0;
        conditions->undo();
        if (sys::Interrupt::requested()) return fail(HANARE_STATUS_BUSY, "interrupted");
        return judge(run, output_text(output.number()), oom_kills, {round, case_name, system});
    }

    Result<void> judge(const ProgramRun& run, const std::string& output, uint64_t oom_kills,
                       NumpySample sample) {
        const auto said = bench::parse_numpy_sample(output);
        if (run.ending == WorkerLines::Next::kTooSlow) {
            sample.failure = bench::format("> %u s", series_.patience_s);
        } else if (oom_kills > 0) {
            sample.failure = "killed";
            series_.remarks.insert(sample.case_name + ", " + sample.system +
                                   " was killed: out of memory");
        } else if (!run.is_good() || !said) {
            return fail(HANARE_STATUS_SYSTEM, "%s, %s: %.200s (interpreter: %s; see --python)",
                        sample.case_name.c_str(), sample.system.c_str(),
                        run.is_good() ? "no result" : run.last_said().c_str(),
                        series_.python.c_str());
        } else {
            sample.seconds = said->seconds;
            sample.flush_seconds = said->flush_seconds;
            sample.import_seconds = said->import_seconds;
            sample.digest = said->digest;
        }
        series_.samples.push_back(std::move(sample));
        return {};
    }

    // A pool that all fits in has tables, too.
    uint64_t pool_bytes(const std::string& system) const {
        return system == bench::kNumpyFits ? 2 * series_.data_bytes : series_.local_bytes;
    }

    static bool is_limited(const std::string& system) {
        return system == bench::kNumpyMemmap || system == bench::kNumpyHanare;
    }

    uint64_t limit_bytes(const std::string& system) const {
        return (is_limited(system) ? series_.local_bytes : series_.data_bytes) + kProcessBytes;
    }

    ConditionsWanted wanted_conditions(const std::string& system) const {
        ConditionsWanted wanted;
        wanted.cgroup_prefix = is_limited(system) ? "hanare-bench" : "";
        wanted.limit_bytes = limit_bytes(system);
        // A pool keeps its limit by itself.
        wanted.needs_cgroup = system == bench::kNumpyMemmap;
        wanted.directory = series_.directory;
        wanted.guardian = series_.guardian;
        return wanted;
    }

    Launch launch_of(const std::string& case_name, const std::string& system,
                     const std::string& folder) const {
        Launch launch;
        launch.path = series_.python;
        launch.arguments = {series_.python,
                            "-c",
                            kWorker,
                            case_name,
                            system,
                            std::to_string(series_.data_bytes),
                            std::to_string(pool_bytes(system)),
                            folder};
        launch.environment = {
            "HANARE_CONFIG=",
            "HANARE_ENGINE=" + config::value_text(series_.options, OptionId::engine)};
        if (!has_default(series_.options, OptionId::block_bytes)) {
            launch.environment.push_back(
                "HANARE_BLOCK=" + config::value_text(series_.options, OptionId::block_bytes));
        }
        return launch;
    }

    Series& series_;
    const sys::Interrupt& interrupt_;
    size_t number_ = 0;
};

Result<void> finish(const Series& series, JsonFile& json) {
    std::printf(
        "NumPy on arrays of %s, local memory %s; medians of %d; where there are cgroups, memmap "
        "and hanare run below one limit, with %s more for the process;\nin brackets with what is "
        "left in memory written out "
        "at the end\n\n%s\n%s",
        format_size(series.data_bytes).c_str(), format_size(series.local_bytes).c_str(),
        series.rounds, format_size(kProcessBytes).c_str(),
        bench::numpy_table(series.samples).c_str(), bench::numpy_summary(series.samples).c_str());
    for (const std::string& remark : series.remarks) std::printf("%s\n", remark.c_str());
    const std::vector<std::string> different = bench::numpy_differences(series.samples);
    const bool has_plain = std::ranges::count(series.systems, bench::kNumpyPlain) > 0;
    if (different.empty()) {
        std::printf("all results of a case are %s, bit by bit\n",
                    has_plain ? "the plain ones" : "the same ones");
    }
    for (const std::string& text : different) std::printf("%s\n", text.c_str());
    const nlohmann::json params = {
        {"data_bytes", series.data_bytes},
        {"local_bytes", series.local_bytes},
        {"block", has_default(series.options, OptionId::block_bytes)
                      ? "auto"
                      : config::value_text(series.options, OptionId::block_bytes)},
        {"engine", config::value_text(series.options, OptionId::engine)}};
    HANARE_TRY(json.write(bench::numpy_records(series.samples, params)));
    if (different.empty()) return {};
    return fail(HANARE_STATUS_CORRUPT, "a result is not what it must be");
}

Result<void> run(const NumpyFlags& flags, const sys::Interrupt& interrupt) {
    HANARE_TRY_ASSIGN(Series series, make_series(flags));
    // What is said to a worker counts, and nothing besides.
    for (const config::OptionRow& row : config::option_rows()) unsetenv(row.environment.c_str());
    HANARE_TRY_ASSIGN(JsonFile json, JsonFile::open(flags.json));
    HANARE_TRY_ASSIGN(sys::Guardian guardian, sys::Guardian::start());
    series.guardian = &guardian;
    HANARE_TRY(Runner(series, interrupt).run());
    return finish(series, json);
}

}  // namespace

int run_bench_numpy(const NumpyFlags& flags) {
    return run_interruptible("hanare bench numpy", [&](const sys::Interrupt& interrupt) {
        return run(flags, interrupt);
    });
}

}  // namespace hanare::cli
