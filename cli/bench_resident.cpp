// SPDX-License-Identifier: Apache-2.0
//
// STREAM on Hanare's memory and on plain memory, in one process on one CPU, the systems taking
// turns kernel by kernel so that drifts of the machine meet them alike.
#include "cli/bench_resident.hpp"

#include <chrono>
#include <cstdio>
#include <vector>

#include "base/units.hpp"
#include "bench/memory.hpp"
#include "bench/record.hpp"
#include "bench/statistics.hpp"
#include "bench/stream.hpp"
#include "bench/table.hpp"
#include "cli/commands.hpp"
#include "cli/json_file.hpp"
#include "sys/interrupt.hpp"
#include "sys/process_usage.hpp"

namespace hanare::cli {
namespace {

using config::OptionId;

constexpr int kWarmUps = 2;
// Arrays begin a little apart modulo the OS page, so that loads do not alias earlier stores.
constexpr size_t kStaggerDoubles = 72;

struct Size {
    size_t count;  // doubles per array
    int repetitions;
};
constexpr Size kFull = {128 * kMiB / sizeof(double), 21};
constexpr Size kQuick = {48 * kMiB / sizeof(double), 9};

// The project's floor and goal for memory within the budget, of the rate of plain memory.
constexpr double kFloor = 0.98;
constexpr double kGoal = 0.99;

struct System {
    std::string name;
    std::unique_ptr<bench::Memory> memory;
    bench::StreamArrays arrays;
    std::vector<double> seconds[bench::kStreamKernels];
};

Result<void> allocate(System& system, size_t count) {
    double** arrays[] = {&system.arrays.a, &system.arrays.b, &system.arrays.c};
    size_t stagger = 0;
    for (double** array : arrays) {
        HANARE_TRY_ASSIGN(double* memory,
                          system.memory->allocate((count + 2 * kStaggerDoubles) * sizeof(double)));
        *array = memory + stagger;
        stagger += kStaggerDoubles;
    }
    system.arrays.count = count;
    bench::stream_fill(system.arrays);
    return {};
}

Result<std::vector<System>> make_systems(const config::Options& options, size_t count) {
    std::vector<System> systems;
    const uint64_t bytes = 3 * (count * sizeof(double) + options.block_bytes);
    bench::HanareMemoryOptions hanare;
    hanare.local_bytes = bytes + bytes / 8 + 64 * options.block_bytes;
    hanare.store = options.store;
    hanare.block_bytes = options.block_bytes;
    hanare.engine = config::value_text(options, OptionId::engine);
    hanare.read_ahead_blocks = options.read_ahead_blocks;
    HANARE_TRY_ASSIGN(auto far_memory, bench::hanare_memory(hanare));
    systems.push_back({"hanare", std::move(far_memory), {}, {}});
    systems.push_back({"plain", bench::plain_memory(bench::HugePages::kSystem), {}, {}});
    // Where plain memory gets huge pages unasked, show also what it is without them.
    if (bench::transparent_huge_page_mode() == "always") {
        systems.push_back({"plain-4k", bench::plain_memory(bench::HugePages::kNever), {}, {}});
    }
    for (System& system : systems) HANARE_TRY(allocate(system, count));
    return systems;
}

double timed(bench::StreamKernel kernel, const bench::StreamArrays& arrays) {
    const auto start = std::chrono::steady_clock::now();
    bench::stream_run(kernel, arrays);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void measure(std::vector<System>& systems, int repetitions) {
    for (int round = -kWarmUps; round < repetitions; ++round) {
        for (int k = 0; k < bench::kStreamKernels; ++k) {
            if (sys::Interrupt::requested()) return;
            for (size_t i = 0; i < systems.size(); ++i) {
                // Whoever comes first differs from round to round.
                System& system =
                    systems[(i + static_cast<size_t>(round + kWarmUps)) % systems.size()];
                const double seconds = timed(static_cast<bench::StreamKernel>(k), system.arrays);
                if (round >= 0) system.seconds[k].push_back(seconds);
            }
        }
    }
}

uint64_t faults_of(const hanare_counters& counters) {
    return counters.read_faults + counters.write_faults + counters.upgrade_faults;
}

double rate(const System& system, int kernel, double seconds) {
    return static_cast<double>(
               bench::stream_bytes(static_cast<bench::StreamKernel>(kernel), system.arrays.count)) /
           seconds;
}

std::vector<double> rates(const System& system, int kernel) {
    std::vector<double> values;
    for (const double seconds : system.seconds[kernel]) {
        values.push_back(rate(system, kernel, seconds));
    }
    return values;
}

// Time of one round of all kernels, from the medians.
double total_seconds(const System& system) {
    double sum = 0;
    for (const auto& seconds : system.seconds) sum += bench::summarize(seconds).median;
    return sum;
}

void print(const std::vector<System>& systems) {
    std::vector<std::string> header = {"kernel"};
    for (const System& system : systems) header.push_back(system.name);
    for (size_t i = 1; i < systems.size(); ++i) header.push_back("hanare/" + systems[i].name);
    bench::Table table(header);
    const auto add = [&](const std::string& name, auto speed) {
        std::vector<std::string> row = {name};
        for (const System& system : systems) row.push_back(bench::format_rate(speed(system)));
        for (size_t i = 1; i < systems.size(); ++i) {
            row.push_back(bench::format("%.3f", speed(systems[0]) / speed(systems[i])));
        }
        table.add_row(std::move(row));
    };
    uint64_t round_bytes = 0;
    for (int k = 0; k < bench::kStreamKernels; ++k) {
        const auto kernel = static_cast<bench::StreamKernel>(k);
        round_bytes += bench::stream_bytes(kernel, systems[0].arrays.count);
        add(bench::stream_kernel_name(kernel), [k](const System& system) {
            return rate(system, k, bench::summarize(system.seconds[k]).median);
        });
    }
    add("all", [round_bytes](const System& system) {
        return static_cast<double>(round_bytes) / total_seconds(system);
    });
    std::printf("%s", table.text().c_str());
}

double ratio_to(const System& peer, const System& hanare) {
    return total_seconds(peer) / total_seconds(hanare);
}

void judge(const std::vector<System>& systems) {
    for (size_t i = 1; i < systems.size(); ++i) {
        const double ratio = ratio_to(systems[i], systems[0]);
        std::printf("rate of hanare / %s: %.3f (floor %g, goal %g: %s)\n", systems[i].name.c_str(),
                    ratio, kFloor, kGoal,
                    ratio >= kGoal    ? "met"
                    : ratio >= kFloor ? "floor"
                                      : "missed");
    }
}

std::vector<bench::Record> records(const std::vector<System>& systems,
                                   const nlohmann::json& params) {
    std::vector<bench::Record> list;
    for (const System& system : systems) {
        for (int k = 0; k < bench::kStreamKernels; ++k) {
            list.push_back(
                {"resident", bench::stream_kernel_name(static_cast<bench::StreamKernel>(k)),
                 system.name, "rate", "B/s", bench::summarize(rates(system, k)), params});
        }
    }
    for (size_t i = 1; i < systems.size(); ++i) {
        const double ratio = ratio_to(systems[i], systems[0]);
        list.push_back({"resident", "all", "hanare", "ratio_to_" + systems[i].name, "1",
                        bench::summarize({ratio}), params});
    }
    return list;
}

Result<void> verify(const std::vector<System>& systems, int rounds) {
    for (const System& system : systems) {
        if (const auto wrong = bench::stream_verify(system.arrays, rounds)) {
            return fail(HANARE_STATUS_INTERNAL, "%s: element %zu of the arrays is wrong",
                        system.name.c_str(), *wrong);
        }
    }
    return {};
}

Result<void> run_resident(const ResidentFlags& flags) {
    HANARE_TRY_ASSIGN(const config::Options options, load_and_apply(*flags.overrides));
    HANARE_TRY_ASSIGN(JsonFile json, JsonFile::open(flags.json));
    const Size size = flags.quick ? kQuick : kFull;
    const bool pinned = sys::stay_on_this_cpu();
    HANARE_TRY_ASSIGN(std::vector<System> systems, make_systems(options, size.count));
    const std::string huge_pages = bench::transparent_huge_page_mode();
    const std::string array = format_size(size.count * sizeof(double));
    std::printf(
        "STREAM, 3 arrays of %s, all in local memory; median of %d; blocks of %s; huge pages: "
        "%s%s\n\n",
        array.c_str(), size.repetitions, format_size(options.block_bytes).c_str(),
        huge_pages.c_str(), pinned ? "" : "; not pinned to a CPU");
    HANARE_TRY_ASSIGN(const hanare_counters before, systems[0].memory->counters());
    measure(systems, size.repetitions);
    if (sys::Interrupt::requested()) return fail(HANARE_STATUS_BUSY, "interrupted");
    HANARE_TRY_ASSIGN(const hanare_counters after, systems[0].memory->counters());
    HANARE_TRY(verify(systems, kWarmUps + size.repetitions));
    print(systems);
    std::printf("\n");
    judge(systems);
    std::printf("results verified; %llu faults and %s from the store meanwhile\n",
                static_cast<unsigned long long>(faults_of(after) - faults_of(before)),
                format_size(after.read_bytes - before.read_bytes).c_str());
    const nlohmann::json params = {{"array_bytes", size.count * sizeof(double)},
                                   {"local_ratio", 1.0},
                                   {"block_bytes", options.block_bytes},
                                   {"engine", config::value_text(options, OptionId::engine)},
                                   {"store", options.store},
                                   {"threads", 1},
                                   {"flush", false},
                                   {"huge_pages", huge_pages},
                                   {"pinned", pinned}};
    return json.write(records(systems, params));
}

}  // namespace

int run_bench_resident(const ResidentFlags& flags) {
    return run_interruptible("hanare bench resident",
                             [&](const sys::Interrupt&) { return run_resident(flags); });
}

}  // namespace hanare::cli
