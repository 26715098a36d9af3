// SPDX-License-Identifier: Apache-2.0
//
// Round by round, each system in a process of its own, each round beginning with another one; every
// result next to that of the plain sweeps.
#include "cli/bench_stencil.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/units.hpp"
#include "bench/room.hpp"
#include "bench/table.hpp"
#include "cli/commands.hpp"
#include "cli/json_file.hpp"
#include "cli/python.hpp"
#include "cli/stencil_systems.hpp"
#include "cli/store_directory.hpp"
#include "config/rules.hpp"
#include "sys/process_usage.hpp"

namespace hanare::cli {
namespace {

using bench::StencilSample;
using bench::StencilSystem;
using Kind = StencilRun::Kind;

constexpr config::Range kRoundsAllowed(1, 99);
constexpr config::Range kPatienceAllowed_s(1, 86400);
constexpr config::Range kStepsAllowed(2, 100000);
constexpr config::Range kThreadsAllowed(1, 4096);
constexpr config::Range kTimesAllowed(2, 64);
constexpr uint64_t kDomainMin = 64 * kMiB;
constexpr uint64_t kLimitMin = 22 * kMiB;  // of a process at all
constexpr uint64_t kMappedSteps = 2;       // plain sweeps over a mapped file are slow

// What --quick and --sweep change.
struct Extent {
    const char* size;
    const char* times;
    const char* steps;
    const char* rounds;
    const char* patience_s;
};
constexpr Extent kFull = {"4G", "4,8,16", "128", "3", "1200"};
constexpr Extent kQuick = {"192M", "4,8", "6", "1", "60"};
constexpr Extent kSweep = {"512M", "8", "64", "1", "600"};
constexpr Extent kQuickSweep = {"64M", "2", "8", "1", "60"};

struct Series {
    std::vector<StencilSystem> systems;
    std::vector<uint64_t> times;
    bench::SevenShape shape;
    uint64_t steps = 0;
    int rounds = 0;
    uint32_t threads = 1;
    bool is_quick = false;
    std::chrono::seconds patience{0};
    std::string python;
    std::string directory;

    std::vector<StencilSample> samples;
    std::set<std::string> remarks;
};

Result<std::vector<std::string>> parse_compared(const std::string& list) {
    const std::vector<std::string> known = split_list(bench::kStencilComparable);
    std::vector<std::string> names = split_list(list);
    for (const std::string& name : names) {
        if (std::ranges::count(known, name) == 1 && std::ranges::count(names, name) == 1) continue;
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "--compare %s: \"%.50s\" is unknown or named twice; there are %s", list.c_str(),
                    name.c_str(), bench::kStencilComparable);
    }
    return names;
}

Result<std::vector<uint64_t>> parse_times(const std::string& list) {
    std::vector<uint64_t> times;
    for (const std::string& text : split_list(list)) {
        HANARE_TRY_ASSIGN(const uint64_t value, kTimesAllowed.parse("--times", text));
        if (!times.empty() && value <= times.back()) {
            return fail(HANARE_STATUS_INVALID_ARGUMENT, "--times %s: numbers have to rise",
                        list.c_str());
        }
        times.push_back(value);
    }
    return times;
}

// In memory two buffers, on the disk two and the snapshots.
Result<void> check_room(const Series& series) {
    const uint64_t domain = series.shape.domain_bytes();
    if (domain / series.times.back() < kLimitMin) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "--size %s is too little: %llu times less is no memory for a process, %s are",
                    format_size(domain).c_str(),
                    static_cast<unsigned long long>(series.times.back()),
                    format_size(kLimitMin * series.times.back()).c_str());
    }
    HANARE_TRY_ASSIGN(const bench::MachineRoom room, bench::machine_room(series.directory));
    if (domain > room.usable_memory_bytes() || domain * 2 > room.usable_disk_bytes()) {
        return fail(HANARE_STATUS_NO_MEMORY,
                    "a domain of %s needs as much memory, and %s of %.100s; available are %s and "
                    "%s: see --size",
                    format_size(domain).c_str(), format_size(domain * 2).c_str(),
                    series.directory.c_str(), format_size(room.usable_memory_bytes()).c_str(),
                    format_size(room.usable_disk_bytes()).c_str());
    }
    return {};
}

Result<Series> make_series(const StencilFlags& flags) {
    const Extent& extent =
        flags.sweep ? (flags.quick ? kQuickSweep : kSweep) : (flags.quick ? kQuick : kFull);
    Series series;
    series.is_quick = flags.quick;
    HANARE_TRY_ASSIGN(const config::Options options, load_and_apply(*flags.overrides));
    HANARE_TRY_ASSIGN(const auto compared,
                      parse_compared(flags.compare.value_or(bench::kStencilComparable)));
    HANARE_TRY_ASSIGN(series.times, parse_times(flags.times.value_or(extent.times)));
    series.systems = bench::stencil_systems(compared, series.times);
    const std::string size = flags.size.value_or(extent.size);
    HANARE_TRY_ASSIGN(const uint64_t bytes, parse_size("--size", size));
    if (bytes < kDomainMin)
        return config::bad_value("--size", size, "is too little", "64M or more");
    series.shape = bench::seven_shape(bytes);
    HANARE_TRY_ASSIGN(series.steps,
                      kStepsAllowed.parse("--steps", flags.steps.value_or(extent.steps)));
    HANARE_TRY_ASSIGN(series.rounds,
                      kRoundsAllowed.parse("--rounds", flags.rounds.value_or(extent.rounds)));
    series.threads = sys::allowed_cpus();
    if (flags.threads) {
        HANARE_TRY_ASSIGN(series.threads, kThreadsAllowed.parse("--threads", *flags.threads));
    }
    HANARE_TRY_ASSIGN(
        const uint32_t patience_s,
        kPatienceAllowed_s.parse("--patience", flags.patience_s.value_or(extent.patience_s)));
    series.patience = std::chrono::seconds(patience_s);
    if (std::ranges::count(compared, bench::kStencilDevito) > 0) {
        auto python = find_python(flags.python);
        if (!python && flags.python) return std::unexpected(python.error());
        if (python) series.python = *python;
    }
    HANARE_TRY_ASSIGN(series.directory, store_directory(options));
    HANARE_TRY(check_room(series));
    return series;
}

// How a series is run, one sample at a time.
class Runner {
public:
    Runner(Series& series, const StencilSetting& setting) : series_(series), setting_(setting) {}

    Result<void> run() {
        for (int round = 0; round < series_.rounds; ++round) {
            std::vector<StencilSystem> systems = series_.systems;
            // The first round begins with the plain sweeps, which the others are compared with.
            std::ranges::rotate(systems,
                                systems.begin() + round % static_cast<int>(systems.size()));
            for (const StencilSystem& system : systems) {
                ++number_;
                if (!left_out_.contains(system.name)) HANARE_TRY(run_sample(system, round));
            }
        }
        return {};
    }

    // One slab and number of steps of the paper's scheme.
    Result<void> run_point(bench::SweepPoint& point) {
        const bool is_in_memory = point.place == "memory";
        const StencilSystem system = {"hanare", is_in_memory ? "swap" : "file",
                                      is_in_memory ? 0 : series_.times[0]};
        bench::StencilJob job = job_of(system);
        job.method = point.method;
        job.block = point.block;
        job.steps_per_pass = point.steps_per_pass;
        if (is_in_memory) job.memory_bytes = 4 * series_.shape.domain_bytes();
        HANARE_TRY_ASSIGN(const StencilRun run,
                          run_stencil_system(system, job, limit_bytes(system), setting_));
        remark(run.note);
        if (run.kind == Kind::kDoesNotFit) return {};
        if (run.kind != Kind::kDone) {
            return fail(HANARE_STATUS_SYSTEM, "%s, %u planes, %u steps: %.150s",
                        point.method.c_str(), point.block, point.steps_per_pass, run.text.c_str());
        }
        StencilSample sample = {0, system.name, "", series_.shape, job.steps, run.outcome};
        HANARE_TRY(compare(sample, false, true));
        point.updates_per_s = sample.updates_per_s();
        point.redundant = static_cast<double>(run.outcome.redundant_updates) /
                          (series_.shape.updates() * static_cast<double>(job.steps));
        if (!is_in_memory && run.outcome.minimal_bytes > 0) {
            point.bytes_of_minimum =
                static_cast<double>(run.outcome.read_bytes + run.outcome.written_bytes) /
                static_cast<double>(run.outcome.minimal_bytes);
        }
        return {};
    }

    Result<void> run_sample(const StencilSystem& system, int round) {
        const size_t all = static_cast<size_t>(series_.rounds) * series_.systems.size();
        std::fprintf(stderr, "[%zu/%zu] %s\n", number_, all, system.name.c_str());
        const bench::StencilJob job = job_of(system);
        HANARE_TRY_ASSIGN(const StencilRun run,
                          run_stencil_system(system, job, limit_bytes(system), setting_));
        remark(run.note);
        StencilSample sample = {round, system.name, "", series_.shape, job.steps, run.outcome};
        if (run.kind != Kind::kDone) {
            if (system.kind == "plain" || system.is_hanare()) {
                return fail(HANARE_STATUS_SYSTEM, "%s: %.200s", system.name.c_str(),
                            run.text.c_str());
            }
            left_out_.insert(system.name);
            sample.failure = run.text;
            series_.samples.push_back(std::move(sample));
            return {};
        }
        if (system.kind == "plain" && expected_.result.sums.empty()) expected_ = run.outcome;
        HANARE_TRY(compare(sample, system.kind == "mapped", system.kind != bench::kStencilDevito));
        series_.samples.push_back(std::move(sample));
        return {};
    }

private:
    void remark(const std::string& note) {
        if (!note.empty()) series_.remarks.insert(note);
    }

    Result<void> compare(const StencilSample& sample, bool is_early, bool is_ordered) const {
        const std::string text = bench::stencil_mismatch(sample, expected_, is_early, is_ordered);
        if (text.empty()) return {};
        return fail(HANARE_STATUS_CORRUPT, "%s", text.c_str());
    }

    uint64_t limit_bytes(const StencilSystem& system) const {
        return system.times == 0 ? 0 : series_.shape.domain_bytes() / system.times;
    }

    bench::StencilJob job_of(const StencilSystem& system) const {
        bench::StencilJob job;
        job.kind = system.kind;
        job.z = series_.shape.z;
        job.y = series_.shape.y;
        job.x = series_.shape.x;
        job.steps = series_.steps;
        job.threads = series_.threads;
        job.series_every_ms = series_.is_quick ? 20 : 100;
        job.is_ping_pong = system.is_ping_pong;
        const uint64_t mapped_steps = std::min(kMappedSteps, series_.steps);
        if (system.kind == "plain") job.early_steps = mapped_steps;
        if (system.kind == "mapped") job.steps = mapped_steps;
        if (system.has_snapshots) job.snapshot_every = std::max<uint64_t>(1, series_.steps / 2);
        const uint64_t limit = limit_bytes(system);
        job.memory_bytes =
            limit != 0 ? bench::hanare_budget_bytes(limit) : series_.shape.domain_bytes() * 3 / 2;
        return job;
    }

    Series& series_;
    const StencilSetting& setting_;
    bench::StencilOutcome expected_;
    std::set<std::string> left_out_;
    size_t number_ = 0;
};

std::string heading(const Series& series) {
    const bench::SevenShape& shape = series.shape;
    std::string text = bench::format(
        "7 points, double, %lld x %lld x %lld cells, %s as two buffers; %llu steps, %u threads\n",
        static_cast<long long>(shape.z), static_cast<long long>(shape.y),
        static_cast<long long>(shape.x), format_size(shape.domain_bytes()).c_str(),
        static_cast<unsigned long long>(series.steps), series.threads);
    for (const uint64_t each : series.times) {
        text += bench::format("%llux: memory of %s\n", static_cast<unsigned long long>(each),
                              format_size(shape.domain_bytes() / each).c_str());
    }
    return text;
}

nlohmann::json params_of(const Series& series) {
    const bench::SevenShape& shape = series.shape;
    return {{"shape", {shape.z, shape.y, shape.x}},
            {"domain_bytes", shape.domain_bytes()},
            {"steps", series.steps},
            {"threads", series.threads}};
}

Result<void> finish(const Series& series, JsonFile& json) {
    std::printf("%s\n%s\n%s\n%s\n", heading(series).c_str(),
                bench::stencil_table(series.samples, series.systems).c_str(),
                bench::stencil_verdicts(series.samples, series.times).c_str(),
                bench::stencil_series_table(series.samples, series.systems).c_str());
    for (const std::string& remark : series.remarks) std::printf("%s\n", remark.c_str());
    std::printf(
        "medians of %d, ratios of runs of the same round; %g flops an update, those that it "
        "needs;\nall cells are those of the plain sweeps, bit by bit (Devito's to 1e-12); "
        "mmap: %llu steps\n",
        series.rounds, bench::kSevenFlops,
        static_cast<unsigned long long>(std::min(kMappedSteps, series.steps)));
    return json.write(
        bench::stencil_records(series.samples, series.systems, series.times, params_of(series)));
}

std::vector<bench::SweepPoint> sweep_points(const Series& series) {
    // Powers of two; with --quick every third of the slabs and every second number of steps.
    const uint32_t blocks_apart = series.is_quick ? 8 : 2;
    const uint32_t steps_apart = series.is_quick ? 4 : 2;
    const auto planes = static_cast<uint32_t>(series.shape.z);
    std::vector<bench::SweepPoint> points;
    for (const char* const place : {"memory", "file"}) {
        for (const char* const method : {"trapezoid", "two_level"}) {
            for (uint32_t block = 8; block < planes; block *= blocks_apart) {
                for (uint32_t steps = 1; steps <= series.steps; steps *= steps_apart) {
                    points.push_back({place, method, block, steps});
                }
            }
        }
    }
    return points;
}

Result<void> sweep(Series& series, Runner& runner, JsonFile& json) {
    HANARE_TRY(runner.run_sample({bench::kStencilNaive, "plain"}, 0));
    std::vector<bench::SweepPoint> points = sweep_points(series);
    Result<void> ran;
    for (size_t i = 0; ran && i < points.size(); ++i) {
        std::fprintf(stderr, "[%zu/%zu] %s, %s, %u planes, %u steps\n", i + 1, points.size(),
                     points[i].place.c_str(), points[i].method.c_str(), points[i].block,
                     points[i].steps_per_pass);
        ran = runner.run_point(points[i]);
        if (!ran) points.resize(i);
    }
    if (points.empty()) return ran;
    if (!ran) std::printf("not done; what was measured by then:\n\n");
    std::printf("The paper's scheme.  %s\n%s", heading(series).c_str(),
                bench::sweep_tables(points).c_str());
    std::printf("naive in memory: %.2f Gflop/s; all cells are its, bit by bit\n",
                series.samples[0].updates_per_s() * bench::kSevenFlops * 1e-9);
    for (const std::string& remark : series.remarks) std::printf("%s\n", remark.c_str());
    const Result<void> written = json.write(bench::sweep_records(points, params_of(series)));
    return ran ? written : ran;
}

Result<void> run(const StencilFlags& flags, const sys::Interrupt& interrupt) {
    HANARE_TRY_ASSIGN(Series series, make_series(flags));
    // What is said to a worker counts, and nothing besides.
    for (const config::OptionRow& row : config::option_rows()) unsetenv(row.environment.c_str());
    HANARE_TRY_ASSIGN(JsonFile json, JsonFile::open(flags.json));
    HANARE_TRY_ASSIGN(sys::Guardian guardian, sys::Guardian::start());
    const StencilSetting setting = {series.directory, series.python, series.patience, interrupt,
                                    guardian};
    Runner runner(series, setting);
    if (flags.sweep) return sweep(series, runner, json);
    const Result<void> ran = runner.run();
    if (!ran && series.samples.empty()) return ran;
    if (!ran) {
        std::printf("not done; what was measured by then:\n\n");
        series.rounds = series.samples.back().round + 1;
        std::erase_if(series.systems, [&](const StencilSystem& system) {
            return std::ranges::find(series.samples, system.name, &StencilSample::system) ==
                   series.samples.end();
        });
    }
    const Result<void> finished = finish(series, json);
    return ran ? finished : ran;
}

}  // namespace

int run_bench_stencil(const StencilFlags& flags) {
    if (flags.worker) return run_stencil_worker(*flags.worker);
    return run_interruptible("hanare bench stencil", [&](const sys::Interrupt& interrupt) {
        return run(flags, interrupt);
    });
}

}  // namespace hanare::cli
