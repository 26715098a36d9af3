// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_pager.hpp"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <set>
#include <sstream>

#include "base/units.hpp"
#include "bench/memory.hpp"
#include "bench/pager_plan.hpp"
#include "bench/pager_report.hpp"
#include "bench/raw_device.hpp"
#include "bench/table.hpp"
#include "cli/commands.hpp"
#include "cli/demo_progress.hpp"
#include "cli/json_file.hpp"
#include "cli/pager_station.hpp"
#include "config/rules.hpp"
#include "config/store_spec.hpp"
#include "sys/block_device.hpp"
#include "sys/file.hpp"
#include "sys/interrupt.hpp"
#include "sys/memory_limits.hpp"
#include "sys/platform.hpp"

namespace hanare::cli {
namespace {

using bench::PagerCase;
using config::OptionId;

constexpr int kThreadsMax = 64;
constexpr config::Range kRoundsAllowed(1, 99);
constexpr int kFailuresMax = 2;  // of a system, before it is given up
constexpr const char* kPeers[] = {"plain",       "mmap", "mmap_sequential",
                                  "mmap_random", "swap", "zram"};

// What --quick changes.
struct Extent {
    const char* compare;
    uint64_t limit_bytes;
    const char* threads;
    int rounds;
    double pass_s_max;
    uint64_t accesses;
};
constexpr Extent kFull = {
    "plain,mmap,mmap_sequential,mmap_random,swap,zram", 512 * kMiB, "1,2", 5, 10, 20000};
constexpr Extent kQuick = {"mmap,mmap_sequential,swap", 128 * kMiB, "1", 3, 1.5, 5000};

// All that was asked, checked.
struct Series {
    PagerSetting setting;
    std::vector<PagerSystem> systems;  // Hanare first, the raw device last
    std::vector<PagerCase> cases;
    std::vector<int> threads;
    uint32_t rounds = 0;
};

// What came of it.
struct Outcome {
    bench::PagerSamples samples;
    std::vector<std::string> remarks;     // for below the table
    std::map<std::string, int> failures;  // by system
    std::set<std::string> left_out;       // systems that cannot run here
    std::string error;                    // why the bench as a whole failed; empty when it did not
};

std::vector<std::string> split(const std::string& list) {
    std::vector<std::string> parts;
    std::istringstream text(list);
    for (std::string part; std::getline(text, part, ',');) parts.push_back(part);
    if (list.empty() || list.ends_with(',')) parts.emplace_back();
    return parts;
}

std::unexpected<Error> bad_list(const char* flag, const std::string& list, const std::string& part,
                                const std::string& allowed) {
    return fail(HANARE_STATUS_INVALID_ARGUMENT,
                "%s %s: '%s' is unknown or named twice; allowed are %s", flag, list.c_str(),
                part.c_str(), allowed.c_str());
}

Result<std::vector<PagerSystem>> parse_systems(const std::string& list) {
    static const std::string kHanareEngine = "hanare:";
    std::vector<PagerSystem> systems = {{bench::kHanareSystem, "hanare"}};
    for (const std::string& name : split(list)) {
        const bool twice = std::any_of(systems.begin(), systems.end(),
                                       [&](const auto& system) { return system.name == name; });
        PagerSystem system = {name, name};
        bool known = std::find(std::begin(kPeers), std::end(kPeers), name) != std::end(kPeers);
        if (name.starts_with(kHanareEngine)) {
            system.kind = "hanare";
            system.engine = name.substr(kHanareEngine.size());
            HANARE_TRY(config::load_options({{OptionId::engine, system.engine, "flag --compare"}}));
            known = true;
        }
        if (!known || twice) {
            return bad_list("--compare", list, name,
                            "plain, mmap, mmap_sequential, mmap_random, swap, zram and "
                            "hanare:ENGINE");
        }
        systems.push_back(system);
    }
    systems.push_back({"device", "device"});
    return systems;
}

Result<std::vector<PagerCase>> all_cases() {
    std::vector<PagerCase> cases;
    for (int i = 0; i < bench::kPagerCases; ++i) cases.push_back(static_cast<PagerCase>(i));
    return cases;
}

Result<std::vector<PagerCase>> parse_cases(const std::string& list) {
    std::vector<PagerCase> cases;
    for (const std::string& name : split(list)) {
        const auto which = bench::pager_case_of(name);
        if (!which || std::find(cases.begin(), cases.end(), *which) != cases.end()) {
            return bad_list("--cases", list, name, bench::pager_case_names());
        }
        cases.push_back(*which);
    }
    std::sort(cases.begin(), cases.end());  // the order in which they can run
    return cases;
}

Result<std::vector<int>> parse_threads(const std::string& list) {
    std::vector<int> counts;
    for (const std::string& text : split(list)) {
        const bool digits = !text.empty() && text.size() < 4 &&
                            text.find_first_not_of("0123456789") == std::string::npos;
        const int count = digits ? std::stoi(text) : 0;
        if (count < 1 || count > kThreadsMax ||
            std::find(counts.begin(), counts.end(), count) != counts.end()) {
            return bad_list("--threads", list, text,
                            "numbers from 1 to " + std::to_string(kThreadsMax));
        }
        counts.push_back(count);
    }
    return counts;
}

// Cases that are the same for every number of threads run with the first one only.
bool runs_with(PagerCase which, int threads, const std::vector<int>& counts) {
    return which != PagerCase::kMixed || threads == counts.front();
}

Result<void> plan_sizes(const PagerFlags& flags, const config::Options& options,
                        const Extent& extent, Series& series) {
    PagerJob& job = series.setting.job;
    bench::PagerRequest request;
    if (flags.size) {
        HANARE_TRY_ASSIGN(request.data_bytes, parse_size("--size", *flags.size));
    }
    if (options.sources[static_cast<size_t>(OptionId::local_bytes)] != "default") {
        request.limit_bytes = options.local_bytes;
    }
    request.default_limit_bytes = extent.limit_bytes;
    request.block_bytes = options.block_bytes;
    for (const PagerSystem& system : series.systems) {
        const bool has_buffers = system.is_limited() || system.kind == "device";
        request.limited_systems += has_buffers ? 1 : 0;
        request.files += has_buffers && !system.swaps() ? 1 : 0;
        request.has_plain |= system.kind == "plain";
        request.has_swap_file |= system.kind == "swap";
        request.has_zram |= system.kind == "zram";
    }
    bench::MachineRoom room;
    HANARE_TRY_ASSIGN(room.free_disk_bytes, sys::free_disk_bytes(job.directory));
    HANARE_TRY_ASSIGN(const sys::MemoryLimit limit, sys::effective_memory_limit());
    room.available_memory_bytes = limit.bytes;
    room.file_bytes_max = sys::file_bytes_max();
    HANARE_TRY_ASSIGN(series.setting.plan, bench::plan_pager(request, room));
    job.bytes = series.setting.plan.data_bytes;
    job.local_bytes = series.setting.plan.hanare_local_bytes;
    return {};
}

Result<void> check_directory(const std::string& directory, bool may_be_in_memory) {
    HANARE_TRY_ASSIGN(const sys::DirectoryReport report, sys::probe_directory(directory));
    if (!report.in_memory || may_be_in_memory) return {};
    return fail(HANARE_STATUS_STORE_UNAVAILABLE,
                "--store: %s is in memory (%s), where nothing can be put away; name a directory "
                "on a disk, or set TMPDIR",
                directory.c_str(), report.file_system.c_str());
}

Result<Series> make_series(const PagerFlags& flags) {
    const Extent& extent = flags.quick ? kQuick : kFull;
    Series series;
    series.rounds = extent.rounds;
    if (flags.rounds) {
        HANARE_TRY_ASSIGN(series.rounds, kRoundsAllowed.parse("--rounds", *flags.rounds));
    }
    HANARE_TRY_ASSIGN(series.systems, parse_systems(flags.compare.value_or(extent.compare)));
    HANARE_TRY_ASSIGN(series.cases, flags.cases ? parse_cases(*flags.cases) : all_cases());
    HANARE_TRY_ASSIGN(series.threads, parse_threads(flags.threads.value_or(extent.threads)));
    HANARE_TRY_ASSIGN(const config::Options options, load_and_apply(*flags.overrides));
    HANARE_TRY_ASSIGN(const config::StoreSpec store, config::parse_store_spec(options.store));
    HANARE_TRY(check_directory(store.directory, options.allow_tmpfs));
    PagerJob& job = series.setting.job;
    job.directory = store.directory;
    if (const auto device = sys::block_device_of(job.directory)) job.block_device = *device;
    job.pass_s_max = extent.pass_s_max;
    job.accesses = extent.accesses;
    job.store = options.store;
    job.block_bytes = options.block_bytes;
    job.engine = config::value_text(options, OptionId::engine);
    job.read_ahead_blocks = options.read_ahead_blocks;
    job.in_flight_bytes = options.block_bytes * std::max<uint64_t>(1, options.read_ahead_blocks);
    HANARE_TRY(plan_sizes(flags, options, extent, series));
    return series;
}

class Runner {
public:
    explicit Runner(const Series& series) : series_(series) {
        for (const int threads : series.threads) {
            for (const PagerCase which : series.cases) {
                if (runs_with(which, threads, series.threads)) steps_ += series.systems.size();
            }
        }
        steps_ *= series.rounds;
    }

    Outcome run() {
        const auto rounds = static_cast<int>(series_.rounds);
        for (int round = 0; round < rounds && !stopped(); ++round) {
            for (const int threads : series_.threads) {
                for (const bool with_zram : {false, true}) {
                    if (!stopped()) run_sitting(round, threads, with_zram);
                }
            }
        }
        progress_.clear();
        std::stable_sort(outcome_.samples.begin(), outcome_.samples.end(),
                         [this](const auto& left, const auto& right) {
                             return place_of(left.system) < place_of(right.system);
                         });
        return std::move(outcome_);
    }

private:
    // Of the system in what was asked for; the parts of the raw device come last.
    size_t place_of(const std::string& name) const {
        const auto found = std::find_if(series_.systems.begin(), series_.systems.end(),
                                        [&](const auto& system) { return system.name == name; });
        return static_cast<size_t>(found - series_.systems.begin());
    }

    bool is_given_up(const PagerSystem& system) {
        return outcome_.left_out.contains(system.name) ||
               outcome_.failures[system.name] >= kFailuresMax;
    }

    bool stopped() const { return sys::Interrupt::requested() || !outcome_.error.empty(); }

    // Swap goes to one device at a time, whoever swaps: zram has to wait until swap is done.
    bool sits(const PagerSystem& system, bool with_zram) const {
        const auto& systems = series_.systems;
        const bool has_swap = std::any_of(systems.begin(), systems.end(),
                                          [](const auto& other) { return other.kind == "swap"; });
        return with_zram == (has_swap && system.kind == "zram");
    }

    // Some systems, alive at the same time and taking turns case by case.
    void run_sitting(int round, int threads, bool with_zram) {
        std::deque<PagerStation> stations;
        for (const PagerSystem& system : series_.systems) {
            if (!sits(system, with_zram) || is_given_up(system)) continue;
            if (system.kind == "plain" && series_.setting.plan.no_plain) {
                give_up(system, {PagerReply::Kind::kLeftOut, *series_.setting.plan.no_plain});
                continue;
            }
            stations.emplace_back(system, series_.setting);
            const auto seed = static_cast<uint64_t>(round * kThreadsMax + threads);
            const PagerReply reply = stations.back().open(threads, seed);
            if (!reply.is_done()) {
                give_up(system, reply);
                close(stations.back());
                stations.pop_back();
            }
            if (stopped()) return;
        }
        for (const PagerCase which : series_.cases) {
            if (runs_with(which, threads, series_.threads)) {
                run_case(stations, round, threads, which);
            }
        }
        for (PagerStation& station : stations) close(station);
    }

    // Every system once, each round and each case beginning with another one.
    void run_case(std::deque<PagerStation>& stations, int round, int threads, PagerCase which) {
        const size_t first = static_cast<size_t>(round) + static_cast<size_t>(which);
        for (size_t i = 0; i < stations.size() && !stopped(); ++i) {
            PagerStation& station = stations[(first + i) % stations.size()];
            if (!station.is_open()) continue;
            progress_.begin(bench::format("[%zu/%zu] %s, %d thread%s: %s", ++step_, steps_,
                                          bench::pager_case_name(which), threads,
                                          threads == 1 ? "" : "s", station.system().name.c_str()),
                            0);
            PagerReply reply = station.prepare(which);
            if (reply.is_done()) reply = measure(station, which);
            if (!reply.is_done()) {
                give_up(station.system(), reply);
                close(station);
            }
            for (const PagerResult& result : reply.results) {
                outcome_.samples.push_back({round, threads, which, result.system, result.metrics});
            }
        }
    }

    PagerReply measure(PagerStation& station, PagerCase which) {
        const auto warm = bench::warm_memory(series_.setting.plan.limit_bytes);
        if (!warm) return {PagerReply::Kind::kFailed, warm.error().text};
        return station.measure(which);
    }

    void close(PagerStation& station) {
        station.close();
        for (const std::string& note : station.notes()) remark(station.system().name, note);
    }

    void give_up(const PagerSystem& system, const PagerReply& reply) {
        using Kind = PagerReply::Kind;
        if (reply.kind == Kind::kLeftOut) outcome_.left_out.insert(system.name);
        ++outcome_.failures[system.name];
        if (reply.kind == Kind::kInterrupted) return;
        if (reply.kind == Kind::kWrong) {
            outcome_.error = system.name + " gave a wrong value: " + reply.text;
        } else if (system.name == bench::kHanareSystem) {
            outcome_.error = system.name + " did not finish: " + reply.text;
        } else {
            const bool left_out = reply.kind == Kind::kLeftOut;
            remark(system.name, (left_out ? "left out: " : "did not finish: ") + reply.text);
        }
    }

    void remark(const std::string& system, const std::string& text) {
        const std::string line = system + ": " + text;
        auto& remarks = outcome_.remarks;
        if (std::find(remarks.begin(), remarks.end(), line) == remarks.end()) {
            remarks.push_back(line);
        }
    }

    const Series& series_;
    Outcome outcome_;
    Progress progress_;
    size_t step_ = 0;
    size_t steps_ = 0;
};

void print_head(const Series& series) {
    const bench::PagerPlan& plan = series.setting.plan;
    const PagerJob& job = series.setting.job;
    std::printf("%s of data, %s of memory for each limited system; %u round%s\n",
                format_size(plan.data_bytes).c_str(), format_size(plan.limit_bytes).c_str(),
                series.rounds, series.rounds == 1 ? "" : "s");
    std::printf(
        "hanare: budget %s, blocks of %s, engine %s, store %s; raw device: io_uring, O_DIRECT, "
        "%s, %s in flight\n",
        format_size(plan.hanare_local_bytes).c_str(), format_size(job.block_bytes).c_str(),
        job.engine.c_str(), job.store.c_str(), format_size(bench::RawDevice::kBlockBytes).c_str(),
        format_size(job.in_flight_bytes).c_str());
    for (const std::string& note : plan.notes) std::printf("note: %s\n", note.c_str());
    std::fflush(stdout);
}

void print_results(const Outcome& outcome) {
    std::printf("\n%s", bench::pager_table(outcome.samples).c_str());
    std::puts(
        "hanare/it: median of the ratios of each round; of rates above 1, of times below 1 is "
        "Hanare ahead\n"
        "* stopped before the end of the pass; the rate of what was done by then");
    for (const std::string& remark : outcome.remarks) std::printf("%s\n", remark.c_str());
    std::printf("\ngoals, as ratios in one round\n%s", bench::pager_goals(outcome.samples).c_str());
    std::fflush(stdout);
}

nlohmann::json params_of(const Series& series) {
    const PagerJob& job = series.setting.job;
    return {{"data_bytes", series.setting.plan.data_bytes},
            {"limit_bytes", series.setting.plan.limit_bytes},
            {"local_ratio", static_cast<double>(series.setting.plan.limit_bytes) /
                                static_cast<double>(series.setting.plan.data_bytes)},
            {"local_bytes", job.local_bytes},
            {"block_bytes", job.block_bytes},
            {"engine", job.engine},
            {"read_ahead_blocks", job.read_ahead_blocks},
            {"store", job.store},
            {"flush", false}};
}

Result<void> run(const PagerFlags& flags, const sys::Interrupt& interrupt) {
    HANARE_TRY_ASSIGN(Series series, make_series(flags));
    HANARE_TRY_ASSIGN(JsonFile json, JsonFile::open(flags.json));
    series.setting.interrupt_fd = interrupt.fd();
    auto guardian = sys::Guardian::start();
    if (guardian) {
        series.setting.guardian = &*guardian;
    } else {
        series.setting.plan.notes.push_back(std::string("without a guardian against kill -9: ") +
                                            guardian.error().text);
    }
    const std::string& directory = series.setting.job.directory;
    const int stale =
        sys::remove_stale_swap_files(directory) + sys::remove_stale_zram_swap(directory);
    if (stale > 0) {
        std::fprintf(stderr, "removed swap that a killed run had left, %d time(s)\n", stale);
    }
    print_head(series);
    const Outcome outcome = Runner(series).run();
    if (sys::Interrupt::requested()) return fail(HANARE_STATUS_BUSY, "interrupted");
    if (!outcome.error.empty()) {
        return fail(HANARE_STATUS_INTERNAL, "%s", outcome.error.c_str());
    }
    print_results(outcome);
    return json.write(bench::pager_records(outcome.samples, params_of(series)));
}

}  // namespace

int run_bench_pager(const PagerFlags& flags) {
    if (!flags.worker.empty()) return run_pager_worker(flags.worker);
    return run_interruptible("hanare bench pager", [&](const sys::Interrupt& interrupt) {
        return run(flags, interrupt);
    });
}

}  // namespace hanare::cli
