// SPDX-License-Identifier: Apache-2.0
//
// Two workers, one below `hanare run`, take turns case by case on one CPU, so that drifts of the
// machine meet both alike; what counts is the median of the differences.  Where the system maps
// code and memory moves a call by some nanoseconds for as long as a process lives: after a few
// rounds other workers follow.  Starts are whole processes: /bin/true, and `hanare run` with it.
#include "cli/bench_intercept.hpp"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <vector>

#include "bench/intercept_case.hpp"
#include "bench/record.hpp"
#include "bench/statistics.hpp"
#include "bench/table.hpp"
#include "cli/commands.hpp"
#include "cli/intercept_station.hpp"
#include "cli/json_file.hpp"
#include "cli/store_directory.hpp"
#include "config/store_spec.hpp"
#include "sys/process_usage.hpp"
#include "sys/timed_program.hpp"

namespace hanare::cli {
namespace {

namespace fs = std::filesystem;
using bench::InterceptUnit;

struct Size {
    int workers;  // of either kind, one after the other
    int rounds;   // of each; either kind comes first in half of them
    int starts;
    uint64_t for_ns;  // each case and round
};
constexpr Size kFull = {11, 4, 301, 20'000'000};
constexpr Size kQuick = {2, 4, 11, 2'000'000};
constexpr int kWarmUps = 1;

constexpr const char* kTrue = "/bin/true";
constexpr double kStartFloor_us = 1000;
constexpr double kStartGoal_us = 500;

// One case of both systems.
struct Measured {
    std::string name;
    std::string text;
    std::string unit;        // of the times
    std::string difference;  // its unit: that of the times, or "%"
    double floor = 0;
    double goal = 0;
    std::vector<double> plain;
    std::vector<double> hanare;

    std::vector<double> differences() const {
        std::vector<double> values;
        for (size_t i = 0; i < plain.size(); ++i) {
            const double more = hanare[i] - plain[i];
            values.push_back(difference == "%" ? 100 * more / plain[i] : more);
        }
        return values;
    }
    const char* verdict() const {
        const double median = bench::summarize(differences()).median;
        return median <= goal ? "met" : median <= floor ? "floor" : "missed";
    }
};

Measured measured_of(const bench::InterceptCase& which) {
    Measured measured;
    measured.name = which.name;
    measured.text = which.text;
    measured.unit = which.unit == InterceptUnit::kPerCall ? "ns" : "us";
    measured.difference = which.unit == InterceptUnit::kPerCall ? "ns" : "%";
    measured.floor = which.floor;
    measured.goal = which.goal;
    return measured;
}

Result<void> measure_round(InterceptStation& plain, InterceptStation& hanare,
                           std::vector<Measured>& all, int round, uint64_t for_ns) {
    constexpr double kNsPerUs = 1000;
    for (size_t i = 0; i < all.size(); ++i) {
        const bench::InterceptCase& which = bench::intercept_cases()[i];
        double values[2] = {};
        for (int turn = 0; turn < 2; ++turn) {
            // Whoever comes first differs from round to round.
            const int system = (turn + round) & 1;
            HANARE_TRY_ASSIGN(values[system],
                              (system == 0 ? plain : hanare).measure(which, for_ns));
            if (all[i].unit == "us") values[system] /= kNsPerUs;
        }
        if (round < 0) continue;
        all[i].plain.push_back(values[0]);
        all[i].hanare.push_back(values[1]);
    }
    return {};
}

Result<void> measure_workers(std::vector<Measured>& all, const Size& size, const std::string& store,
                             const sys::Interrupt& interrupt) {
    HANARE_TRY_ASSIGN(InterceptStation plain, InterceptStation::open(false, store, interrupt));
    HANARE_TRY_ASSIGN(InterceptStation hanare, InterceptStation::open(true, store, interrupt));
    for (int round = -kWarmUps; round < size.rounds; ++round) {
        HANARE_TRY(measure_round(plain, hanare, all, round, size.for_ns));
    }
    HANARE_TRY(plain.close());
    HANARE_TRY_ASSIGN(const uint64_t protected_calls, hanare.close());
    if (protected_calls != 0) return {};
    return fail(HANARE_STATUS_INTERNAL,
                "no system call of the worker had far memory: nothing was measured");
}

Result<std::vector<Measured>> measure_cases(const Size& size, const std::string& store,
                                            const sys::Interrupt& interrupt) {
    std::vector<Measured> all;
    for (const bench::InterceptCase& which : bench::intercept_cases()) {
        all.push_back(measured_of(which));
    }
    for (int i = 0; i < size.workers; ++i) {
        HANARE_TRY(measure_workers(all, size, store, interrupt));
    }
    return all;
}

// The program that users call, installed and where it was built.
Result<std::string> front_path() {
    std::error_code ignored;
    const fs::path directory = fs::read_symlink("/proc/self/exe", ignored).parent_path();
    for (const fs::path& place : {directory / HANARE_PROGRAM_DIRECTORY, directory}) {
        const fs::path path = place / "hanare";
        if (access(path.c_str(), X_OK) == 0) return path.string();
    }
    return fail(HANARE_STATUS_NOT_FOUND, "there is no program hanare beside this one");
}

Result<Measured> measure_starts(const char* name, const char* text, int starts,
                                const std::string& store) {
    HANARE_TRY_ASSIGN(const std::string front, front_path());
    const std::vector<std::string> plain = {kTrue};
    const std::vector<std::string> hanare = {front,     "run", "--local", "256M",
                                             "--store", store, "--",      kTrue};
    Measured measured;
    measured.name = name;
    measured.text = text;
    measured.unit = measured.difference = "us";
    measured.floor = kStartFloor_us;
    measured.goal = kStartGoal_us;
    for (int round = -kWarmUps; round < starts; ++round) {
        if (sys::Interrupt::requested()) return fail(HANARE_STATUS_BUSY, "interrupted");
        HANARE_TRY_ASSIGN(const double plain_us, sys::time_program_us(plain));
        HANARE_TRY_ASSIGN(const double hanare_us, sys::time_program_us(hanare));
        if (round < 0) continue;
        measured.plain.push_back(plain_us);
        measured.hanare.push_back(hanare_us);
    }
    return measured;
}

std::string with_unit(double value, const std::string& unit) {
    return bench::format("%.1f %s", value, unit.c_str());
}

std::string table_of(const std::vector<Measured>& all) {
    bench::Table table({"case", "plain", "hanare run", "more", "floor", "goal", "verdict", ""});
    for (const Measured& measured : all) {
        const double more = bench::summarize(measured.differences()).median;
        table.add_row({measured.name,
                       with_unit(bench::summarize(measured.plain).median, measured.unit),
                       with_unit(bench::summarize(measured.hanare).median, measured.unit),
                       with_unit(more, measured.difference), bench::format("%g", measured.floor),
                       bench::format("%g", measured.goal), measured.verdict(), measured.text});
    }
    return table.text();
}

std::vector<bench::Record> records_of(const std::vector<Measured>& all, bool pinned) {
    std::vector<bench::Record> records;
    for (const Measured& measured : all) {
        const nlohmann::json params = {{"floor", measured.floor},
                                       {"goal", measured.goal},
                                       {"verdict", measured.verdict()},
                                       {"pinned", pinned}};
        const auto add = [&](const char* system, const char* metric, const std::string& unit,
                             const std::vector<double>& values) {
            records.push_back({"intercept", measured.name, system, metric, unit,
                               bench::summarize(values), params});
        };
        add("plain", "time", measured.unit, measured.plain);
        add("hanare", "time", measured.unit, measured.hanare);
        add("hanare", "difference", measured.difference, measured.differences());
    }
    return records;
}

Result<void> run_intercept(const InterceptFlags& flags, const sys::Interrupt& interrupt) {
    HANARE_TRY_ASSIGN(const config::Options options, load_and_apply(*flags.overrides));
    HANARE_TRY_ASSIGN(JsonFile json, JsonFile::open(flags.json));
    HANARE_TRY_ASSIGN(const std::string directory, store_directory(options));
    const std::string store = config::file_store_spec(directory);
    const Size size = flags.quick ? kQuick : kFull;
    HANARE_TRY_ASSIGN(Measured spread,
                      measure_starts("start_spread", "the same, wherever the system runs them",
                                     size.starts, store));
    const bool pinned = sys::stay_on_this_cpu();
    HANARE_TRY_ASSIGN(std::vector<Measured> all, measure_cases(size, store, interrupt));
    HANARE_TRY_ASSIGN(Measured start,
                      measure_starts("start", "all of hanare run /bin/true", size.starts, store));
    all.push_back(std::move(start));
    all.push_back(std::move(spread));
    std::printf(
        "The same program plainly and with hanare run, all in the budget; median of %d rounds in "
        "%d pairs of processes, of %d starts%s\n\n%s\n",
        size.workers * size.rounds, size.workers, size.starts,
        pinned ? "" : "; not pinned to a CPU", table_of(all).c_str());
    return json.write(records_of(all, pinned));
}

}  // namespace

int run_bench_intercept(const InterceptFlags& flags) {
    return run_interruptible("hanare bench intercept", [&](const sys::Interrupt& interrupt) {
        return run_intercept(flags, interrupt);
    });
}

}  // namespace hanare::cli
