// SPDX-License-Identifier: Apache-2.0
//
// Round by round, program by program: the plain one, then all systems at all local parts, each
// round beginning with another one.  What has been run is remembered in the file of --resume.
#include "cli/bench_dlm.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "bench/dlm_sweep.hpp"
#include "bench/table.hpp"
#include "cli/commands.hpp"
#include "cli/dlm_builds.hpp"
#include "cli/dlm_runs.hpp"
#include "cli/dlm_servers.hpp"
#include "cli/json_file.hpp"
#include "cli/store_directory.hpp"
#include "config/rules.hpp"
#include "sys/guardian.hpp"
#include "sys/interrupt.hpp"
#include "sys/swap_file.hpp"
#include "sys/zram_swap.hpp"

namespace hanare::cli {
namespace {

using bench::DlmPoint;
using bench::DlmProgram;
using bench::DlmRun;
using config::OptionId;

constexpr config::Range kRoundsAllowed(1, 99);
constexpr config::Range kPatienceAllowed_s(1, 86400);
constexpr config::PowerOfTwoOrAuto kBlocksAllowed(4 * kKiB, 4 * kMiB);
constexpr const char* kSystems[] = {bench::kDlmHanare, bench::kDlmRun, bench::kDlmSwap,
                                    bench::kDlmZram, bench::kDlmMmap};

// What --quick changes.
struct Extent {
    const char* percents;
    const char* stores;
    const char* patience_s;
};
constexpr Extent kFull = {"80,65,40,20,10", "file,server,server_10g", "60"};
constexpr Extent kQuick = {"40,10", "file", "40"};
constexpr const char* kBlocks = "auto";
constexpr const char* kSystemsUsual = "hanare,run,swap,mmap";
constexpr const char* kRounds = "1";

struct Series {
    std::vector<DlmProgram> programs;
    std::vector<double> percents;
    std::vector<uint64_t> blocks;
    std::vector<std::string> stores;
    std::vector<std::string> systems;
    int rounds = 0;
    DlmSetting setting;

    std::vector<DlmRun> runs;
    std::set<std::string> remarks;
};

template <size_t Count>
Result<std::vector<std::string>> parse_names(const char* flag, const std::string& list,
                                             const char* const (&known)[Count]) {
    std::vector<std::string> names = split_list(list);
    for (const std::string& name : names) {
        const bool is_known = std::ranges::find(known, name) != std::end(known);
        if (is_known && std::ranges::count(names, name) == 1) continue;
        std::string all;
        for (const char* each : known) all += (all.empty() ? "" : ",") + std::string(each);
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "%s %s: \"%.50s\" is unknown or named twice; there are %s", flag, list.c_str(),
                    name.c_str(), all.c_str());
    }
    return names;
}

Result<Series> make_series(const DlmFlags& flags) {
    const Extent& extent = flags.quick ? kQuick : kFull;
    HANARE_TRY_ASSIGN(const config::Options options, load_and_apply(*flags.overrides));
    Series series;
    HANARE_TRY_ASSIGN(series.programs, bench::find_dlm_programs(flags.programs.value_or(
                                           bench::default_dlm_programs(flags.quick))));
    HANARE_TRY_ASSIGN(series.percents,
                      parse_local_percents(flags.percents.value_or(extent.percents)));
    HANARE_TRY_ASSIGN(series.stores,
                      parse_names("--stores", flags.stores.value_or(extent.stores), kDlmStores));
    HANARE_TRY_ASSIGN(series.systems,
                      parse_names("--systems", flags.systems.value_or(kSystemsUsual), kSystems));
    for (const std::string& text : split_list(flags.blocks.value_or(kBlocks))) {
        HANARE_TRY_ASSIGN(const uint64_t bytes, kBlocksAllowed.parse("--blocks", text));
        series.blocks.push_back(bytes);
    }
    HANARE_TRY_ASSIGN(const uint64_t rounds,
                      kRoundsAllowed.parse("--rounds", flags.rounds.value_or(kRounds)));
    series.rounds = static_cast<int>(rounds);
    HANARE_TRY_ASSIGN(
        series.setting.patience_s,
        kPatienceAllowed_s.parse("--patience", flags.patience_s.value_or(extent.patience_s)));
    HANARE_TRY_ASSIGN(series.setting.directory, store_directory(options));
    series.setting.engine = config::value_text(options, OptionId::engine);
    return series;
}

// Of one program in one round, but for the plain one.
std::vector<DlmPoint> points_of(const Series& series, const DlmProgram& program, int round) {
    std::vector<DlmPoint> points;
    for (const double percent : series.percents) {
        for (const std::string& system : series.systems) {
            DlmPoint point = {program.name, program.size, system, "", percent, 0, round};
            if (system != bench::kDlmHanare && system != bench::kDlmRun) {
                points.push_back(point);
                continue;
            }
            for (const std::string& store : series.stores) {
                for (const uint64_t block_bytes : series.blocks) {
                    point.store = store;
                    point.block_bytes = block_bytes;
                    points.push_back(point);
                }
            }
        }
    }
    std::ranges::rotate(points, points.begin() + round % static_cast<int>(points.size()));
    return points;
}

// One line of JSON for each run that has ended.
class Memory {
public:
    static Result<Memory> open(const std::optional<std::string>& path, const DlmSetting& setting) {
        Memory memory;
        if (!path) return memory;
        const std::string head = nlohmann::json{
            {"store", setting.directory},
            {"engine", setting.engine},
            {"patience_s",
             setting.patience_s}}.dump();
        std::ifstream old(*path);
        bool has_head = false;
        for (std::string line; std::getline(old, line);) {
            if (!std::exchange(has_head, true)) {
                if (line == head) continue;
                return fail(HANARE_STATUS_INVALID_ARGUMENT,
                            "--resume: %.100s is of another store, engine or patience, or not of "
                            "hanare bench dlm",
                            path->c_str());
            }
            const auto parsed = nlohmann::json::parse(line, nullptr, false);
            if (parsed.is_discarded()) continue;  // the last one of a run that was killed
            try {
                memory.runs_.push_back(parsed.get<DlmRun>());
            } catch (const nlohmann::json::exception&) {
                return fail(HANARE_STATUS_INVALID_ARGUMENT,
                            "--resume: %.150s is not of hanare bench dlm", path->c_str());
            }
        }
        memory.file_.open(*path, std::ios::app);
        // The last line may have been cut off.
        if (memory.file_.is_open()) memory.file_ << (has_head ? "" : head) << std::endl;
        if (memory.file_.good()) return memory;
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "--resume: %.150s cannot be written",
                    path->c_str());
    }

    const DlmRun* find(const DlmPoint& point) const {
        const auto found =
            std::ranges::find_if(runs_, [&](const DlmRun& run) { return run.point == point; });
        return found == runs_.end() ? nullptr : &*found;
    }
    void keep(const DlmRun& run) {
        if (file_.is_open()) file_ << nlohmann::json(run).dump() << std::endl;
    }

private:
    std::vector<DlmRun> runs_;
    std::ofstream file_;
};

class Sweep {
public:
    Sweep(Series& series, Memory& memory, const sys::Interrupt& interrupt)
        : series_(series), memory_(memory), interrupt_(interrupt) {
        all_ = static_cast<size_t>(series.rounds) * series.programs.size() *
               (points_of(series, series.programs.front(), 0).size() + 1);
    }

    Result<void> run() {
        for (int round = 0; round < series_.rounds; ++round) {
            for (const DlmProgram& program : series_.programs) {
                HANARE_TRY(run_program(program, round));
            }
        }
        return {};
    }

private:
    Result<void> run_program(const DlmProgram& program, int round) {
        const DlmPoint plain = {program.name, program.size, bench::kDlmPlain, "", 0, 0, round};
        HANARE_TRY(run_point(program, plain));
        const std::vector<DlmPoint> points = points_of(series_, program, round);
        if (data_bytes_[program.title()] == 0) {
            number_ += points.size();  // there is nothing to compare with
            return {};
        }
        for (const DlmPoint& point : points) HANARE_TRY(run_point(program, point));
        return {};
    }

    Result<void> run_point(const DlmProgram& program, const DlmPoint& point) {
        ++number_;
        uint64_t& data_bytes = data_bytes_[program.title()];
        const DlmRun* const known = memory_.find(point);
        // The plain program says how large its arrays are, once.
        if (known != nullptr && (point.system != bench::kDlmPlain || data_bytes != 0)) {
            series_.runs.push_back(*known);
            return {};
        }
        if (is_hopeless(point)) return {};
        say(point);
        const DlmOutcome outcome =
            run_dlm(program, point, data_bytes, series_.setting, interrupt_.fd());
        if (outcome.is_interrupted || sys::Interrupt::requested()) {
            return fail(HANARE_STATUS_BUSY, "interrupted");
        }
        if (!outcome.left_out.empty()) {
            const std::string store = point.store.empty() ? "" : ", " + point.store;
            series_.remarks.insert(program.title() + ", " + point.system + store +
                                   " is left out: " + outcome.left_out);
            return {};
        }
        if (outcome.data_bytes != 0) data_bytes = outcome.data_bytes;
        series_.runs.push_back(known != nullptr ? *known : outcome.run);
        if (known == nullptr) memory_.keep(outcome.run);
        return {};
    }

    // It has taken too long with more memory already.
    bool is_hopeless(const DlmPoint& point) const {
        return std::ranges::any_of(series_.runs, [&](const DlmRun& run) {
            DlmPoint same = run.point;
            same.local_percent = point.local_percent;
            same.round = point.round;
            return same == point && run.failure.starts_with('>') &&
                   run.point.local_percent >= point.local_percent;
        });
    }

    void say(const DlmPoint& point) const {
        std::fprintf(stderr, "[%zu/%zu] %s %s: %s", number_, all_, point.program.c_str(),
                     point.size.c_str(), point.system.c_str());
        if (point.local_percent != 0) std::fprintf(stderr, ", %g %% local", point.local_percent);
        if (!point.store.empty()) {
            std::fprintf(stderr, ", %s, blocks of %s", point.store.c_str(),
                         bench::dlm_block_text(point).c_str());
        }
        std::fputc('\n', stderr);
    }

    Series& series_;
    Memory& memory_;
    const sys::Interrupt& interrupt_;
    std::map<std::string, uint64_t> data_bytes_;  // by program
    size_t number_ = 0;
    size_t all_ = 0;
};

Result<void> finish(const Series& series, JsonFile& json) {
    std::printf("%s", bench::dlm_tables(series.runs).c_str());
    std::puts(
        "\ntimes by the plain program's of the same round, medians; local: part of the arrays that "
        "fits, and what the kernel's systems get\nbesides 16 MiB for the process; in "
        "brackets with what was left in memory written out at the end;\nall results verified by "
        "the benchmarks' own rules");
    for (const std::string& text : bench::dlm_failures(series.runs)) {
        std::printf("%s\n", text.c_str());
    }
    for (const std::string& remark : series.remarks) std::printf("%s\n", remark.c_str());
    HANARE_TRY(json.write(bench::dlm_records(series.runs)));
    const std::vector<std::string> different = bench::dlm_differences(series.runs);
    for (const std::string& text : different) std::printf("%s\n", text.c_str());
    const bool is_wrong =
        std::ranges::any_of(series.runs, [](const DlmRun& run) { return run.failure == "WRONG"; });
    if (different.empty() && !is_wrong) return {};
    return fail(HANARE_STATUS_CORRUPT, "a result is not what it must be");
}

Result<void> run(const DlmFlags& flags, const sys::Interrupt& interrupt) {
    HANARE_TRY_ASSIGN(Series series, make_series(flags));
    // What is said to a program counts, and nothing besides.
    for (const config::OptionRow& row : config::option_rows()) unsetenv(row.environment.c_str());
    HANARE_TRY_ASSIGN(Memory memory, Memory::open(flags.resume, series.setting));
    HANARE_TRY_ASSIGN(JsonFile json, JsonFile::open(flags.json));
    HANARE_TRY_ASSIGN(sys::Guardian guardian, sys::Guardian::start());
    series.setting.guardian = &guardian;
    sys::remove_stale_swap_files(series.setting.directory);
    sys::remove_stale_zram_swap(series.setting.directory);
    HANARE_TRY_ASSIGN(DlmBuilds builds, DlmBuilds::make(series.setting.directory, &guardian));
    series.setting.builds = &builds;
    DlmServers servers(interrupt);
    series.setting.servers = &servers;
    HANARE_TRY(Sweep(series, memory, interrupt).run());
    return finish(series, json);
}

}  // namespace

int run_bench_dlm(const DlmFlags& flags) {
    return run_interruptible("hanare bench dlm", [&](const sys::Interrupt& interrupt) {
        return flags.link ? keep_dlm_link(*flags.link, interrupt) : run(flags, interrupt);
    });
}

}  // namespace hanare::cli
