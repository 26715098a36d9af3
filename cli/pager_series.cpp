// SPDX-License-Identifier: Apache-2.0
#include "cli/pager_series.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "bench/pager_plan.hpp"
#include "bench/pager_report.hpp"
#include "cli/commands.hpp"
#include "cli/store_directory.hpp"
#include "config/rules.hpp"
#include "config/store_spec.hpp"
#include "sys/block_device.hpp"

namespace hanare::cli {
namespace {

using bench::PagerCase;
using config::OptionId;

constexpr int kThreadsMax = 64;
constexpr uint64_t kStoreUnit = 4 * kMiB;  // in which a store reserves room
constexpr config::Range kRoundsAllowed(1, 99);
constexpr const char* kPeers[] = {"plain",       "mmap", "mmap_sequential",
                                  "mmap_random", "swap", "zram"};

// What --quick changes.
struct Extent {
    const char* compare;
    uint64_t limit_bytes;
    const char* threads;
    uint32_t rounds;
    double pass_s_max;
    uint64_t accesses;
};
constexpr Extent kFull = {
    "plain,mmap,mmap_sequential,mmap_random,swap,zram", 512 * kMiB, "1,2", 5, 5, 20000};
constexpr Extent kQuick = {"mmap,mmap_sequential,swap", 128 * kMiB, "1", 3, 1, 5000};

std::unexpected<Error> bad_part(const char* flag, const std::string& part,
                                const std::string& allowed) {
    return config::bad_value(flag, part, "is unknown or named twice", allowed);
}

Result<std::vector<PagerSystem>> parse_systems(const std::string& list) {
    static const std::string kHanareEngine = "hanare:";
    std::vector<PagerSystem> systems = {{bench::kHanareSystem, "hanare"}};
    for (const std::string& name : split_list(list)) {
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
            return bad_part("--compare", name,
                            "plain, mmap, mmap_sequential, mmap_random, swap, zram or "
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
    for (const std::string& name : split_list(list)) {
        const auto which = bench::pager_case_of(name);
        if (!which || std::find(cases.begin(), cases.end(), *which) != cases.end()) {
            return bad_part("--cases", name, bench::pager_case_names());
        }
        cases.push_back(*which);
    }
    std::sort(cases.begin(), cases.end());  // the order in which they can run
    return cases;
}

Result<std::vector<int>> parse_threads(const std::string& list) {
    std::vector<int> counts;
    for (const std::string& text : split_list(list)) {
        const bool digits = !text.empty() && text.size() < 4 &&
                            text.find_first_not_of("0123456789") == std::string::npos;
        const int count = digits ? std::stoi(text) : 0;
        if (count < 1 || count > kThreadsMax ||
            std::find(counts.begin(), counts.end(), count) != counts.end()) {
            return bad_part("--threads", text, "numbers from 1 to " + std::to_string(kThreadsMax));
        }
        counts.push_back(count);
    }
    return counts;
}

// A store that keeps its blocks on the disk when an array ends, as the other systems' files do.
std::string store_of_fixed_size(const std::string& store, const PagerJob& job) {
    if (store.find('?') != std::string::npos) return store;
    const uint64_t bytes = round_up(job.bytes, kStoreUnit);
    return config::file_store_spec(job.directory) + "?size=" + config::exact_size(bytes);
}

Result<void> plan_sizes(const PagerFlags& flags, const config::Options& options,
                        const Extent& extent, PagerSeries& series) {
    PagerJob& job = series.setting.job;
    bench::PagerRequest request;
    if (flags.size) {
        HANARE_TRY_ASSIGN(request.data_bytes, parse_size("--size", *flags.size));
    }
    const std::string& source = options.sources[static_cast<size_t>(OptionId::local_bytes)];
    if (source != "default") request.limit_bytes = options.local_bytes;
    request.limit_name = "local (" + source + ")";
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
    HANARE_TRY_ASSIGN(const bench::MachineRoom room, bench::machine_room(job.directory));
    HANARE_TRY_ASSIGN(series.setting.plan, bench::plan_pager(request, room));
    job.bytes = series.setting.plan.data_bytes;
    job.local_bytes = series.setting.plan.hanare_local_bytes;
    job.store = store_of_fixed_size(options.store, job);
    return {};
}

}  // namespace

Result<PagerSeries> make_pager_series(const PagerFlags& flags) {
    const Extent& extent = flags.quick ? kQuick : kFull;
    PagerSeries series;
    series.rounds = extent.rounds;
    if (flags.rounds) {
        HANARE_TRY_ASSIGN(series.rounds, kRoundsAllowed.parse("--rounds", *flags.rounds));
    }
    HANARE_TRY_ASSIGN(series.systems, parse_systems(flags.compare.value_or(extent.compare)));
    HANARE_TRY_ASSIGN(series.cases, flags.cases ? parse_cases(*flags.cases) : all_cases());
    HANARE_TRY_ASSIGN(series.threads, parse_threads(flags.threads.value_or(extent.threads)));
    HANARE_TRY_ASSIGN(const config::Options options, load_and_apply(*flags.overrides));
    PagerJob& job = series.setting.job;
    HANARE_TRY_ASSIGN(job.directory, store_directory(options));
    if (const auto device = sys::block_device_of(job.directory)) job.block_device = *device;
    job.pass_s_max = extent.pass_s_max;
    job.accesses = extent.accesses;
    job.block_bytes = options.block_bytes;
    job.engine = config::value_text(options, OptionId::engine);
    job.read_ahead_blocks = options.read_ahead_blocks;
    // As far as one stream is read ahead at first in a large pool (src/pager/fault/read_ahead.cpp).
    constexpr uint64_t kInFlightBytesMax = 32 * kMiB;
    job.in_flight_bytes = std::clamp(options.block_bytes * options.read_ahead_blocks,
                                     options.block_bytes, kInFlightBytesMax);
    HANARE_TRY(plan_sizes(flags, options, extent, series));
    return series;
}

}  // namespace hanare::cli
