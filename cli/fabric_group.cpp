// SPDX-License-Identifier: Apache-2.0
#include "cli/fabric_group.hpp"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <span>

#include "bench/statistics.hpp"
#include "bench/table.hpp"
#include "cli/worker_lines.hpp"
#include "job/group.hpp"
#include "sys/child.hpp"
#include "sys/clock.hpp"

namespace hanare::cli {
namespace {

constexpr int kJoinMs = 60'000;
constexpr int kPatienceMs = 60'000;
constexpr std::chrono::seconds kJobPatience{120};
constexpr uint32_t kWarmUps = 10;
constexpr uint32_t kBarriers = 200;
constexpr uint32_t kMulticasts = 60;
constexpr size_t kDataBytes = 1024;
constexpr double kNsPerUs = 1000;
constexpr const char* kTree = "tree";
constexpr const char* kFlat = "flat";

// What a job has found.
struct Measured {
    uint32_t tasks = 0;
    double barrier_us = 0;
    double tree_us = 0;
    double flat_us = 0;
    uint64_t tree_messages = 0;  // that the root sends and receives for a multicast
    uint64_t flat_messages = 0;
};

uint64_t soon() { return job::deadline_after(kPatienceMs); }

Result<double> time_barriers(job::Group& group) {
    std::vector<double> times;
    for (uint32_t i = 0; i < kWarmUps + kBarriers; ++i) {
        const uint64_t begin_ns = sys::now_ns();
        HANARE_TRY(group.barrier(soon()));
        if (i >= kWarmUps) times.push_back(static_cast<double>(sys::now_ns() - begin_ns));
    }
    return bench::summarize(times).median / kNsPerUs;
}

Result<double> time_multicasts(job::Group& group, uint32_t window, bool is_flat,
                               uint64_t& messages) {
    std::vector<double> times;
    std::vector<std::byte> data(kDataBytes);
    for (uint32_t i = 0; i < kWarmUps + kMulticasts; ++i) {
        std::memset(data.data(), static_cast<int>(i), data.size());
        const uint64_t begin_ns = sys::now_ns();
        HANARE_TRY_ASSIGN(const job::Group::Counts counts,
                          group.multicast_put({.window = window,
                                               .offset = 0,
                                               .data = data,
                                               .is_flat = is_flat,
                                               .deadline_ns = soon()}));
        if (i >= kWarmUps) times.push_back(static_cast<double>(sys::now_ns() - begin_ns));
        messages = counts.puts + counts.notices + counts.acknowledgements;
    }
    return bench::summarize(times).median / kNsPerUs;
}

// The last of a series, which everybody has when the root says so.
Result<void> check(std::span<const std::byte> memory) {
    const auto expected = static_cast<std::byte>(kWarmUps + kMulticasts - 1);
    if (std::ranges::all_of(memory, [=](std::byte byte) { return byte == expected; })) return {};
    return fail(HANARE_STATUS_INTERNAL, "a multicast has brought something else");
}

Result<Measured> measure_job(const sys::Interrupt& interrupt, uint32_t tasks) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    HANARE_TRY_ASSIGN(sys::Child launcher,
                      sys::Child::start({"hanare", "launch", "-n", std::to_string(tasks), "--",
                                         self, "bench", "fabric", "--group-task"}));
    WorkerLines lines(launcher.output_fd(), interrupt.fd());
    std::string line;
    Measured measured = {.tasks = tasks};
    const WorkerLines::Next next = lines.next(WorkerLines::Clock::now() + kJobPatience, line);
    if (next == WorkerLines::Next::kInterrupted) return fail(HANARE_STATUS_BUSY, "interrupted");
    if (next != WorkerLines::Next::kLine ||
        std::sscanf(line.c_str(), "%lf %lf %" SCNu64 " %lf %" SCNu64, &measured.barrier_us,
                    &measured.tree_us, &measured.tree_messages, &measured.flat_us,
                    &measured.flat_messages) != 5) {
        return fail(HANARE_STATUS_INTERNAL, "a job of %u tasks: %.100s", tasks, line.c_str());
    }
    HANARE_TRY_ASSIGN(const int status, launcher.wait());
    if (status == 0) return measured;
    return fail(HANARE_STATUS_INTERNAL, "a job of %u tasks: %s", tasks,
                sys::describe_wait_status(status).c_str());
}

void add_records(std::vector<bench::Record>& records, const Measured& measured) {
    const auto add = [&](const char* name, const char* metric, const char* unit, double value,
                         const char* way) {
        nlohmann::json params = {{"tasks", measured.tasks}};
        if (way != nullptr) params["way"] = way;
        records.push_back(
            {"fabric", name, "hanare", metric, unit, bench::summarize({value}), params});
    };
    add(kBarrierCase, "time", "us", measured.barrier_us, nullptr);
    add(kMulticastCase, "time", "us", measured.tree_us, kTree);
    add(kMulticastCase, "root_messages", "messages", static_cast<double>(measured.tree_messages),
        kTree);
    add(kMulticastCase, "time", "us", measured.flat_us, kFlat);
    add(kMulticastCase, "root_messages", "messages", static_cast<double>(measured.flat_messages),
        kFlat);
}

}  // namespace

Result<void> run_group_task() {
    HANARE_TRY_ASSIGN(const auto job, job::Job::join(kJoinMs));
    HANARE_TRY_ASSIGN(const auto communicator, job::Communicator::open(*job, {}));
    HANARE_TRY_ASSIGN(const auto group, job::Group::open(*communicator));
    job::Exposures& exposures = communicator->exposures();
    HANARE_TRY_ASSIGN(const std::span<std::byte> memory, exposures.allocate(kDataBytes));
    HANARE_TRY_ASSIGN(const uint32_t region, exposures.expose(memory, fabric::kWrite));
    HANARE_TRY_ASSIGN(const uint32_t window, group->open_window(region, soon()));
    Measured measured;
    HANARE_TRY_ASSIGN(measured.barrier_us, time_barriers(*group));
    for (const bool is_flat : {false, true}) {
        double& us = is_flat ? measured.flat_us : measured.tree_us;
        uint64_t& messages = is_flat ? measured.flat_messages : measured.tree_messages;
        if (job->rank() == 0) {
            HANARE_TRY_ASSIGN(us, time_multicasts(*group, window, is_flat, messages));
        }
        HANARE_TRY(group->barrier(soon()));
        HANARE_TRY(check(memory));
        std::ranges::fill(memory, std::byte{0});
        HANARE_TRY(group->barrier(soon()));
    }
    if (job->rank() == 0) {
        std::printf("%f %f %" PRIu64 " %f %" PRIu64 "\n", measured.barrier_us, measured.tree_us,
                    measured.tree_messages, measured.flat_us, measured.flat_messages);
        std::fflush(stdout);
    }
    bool is_closed = false;
    return group->close_window(window, soon(), is_closed);
}

Result<GroupResults> measure_groups(const sys::Interrupt& interrupt, bool quick) {
    bench::Table table({"tasks", "barrier", "multicast tree", "messages", "flat", "messages"});
    GroupResults results;
    for (const uint32_t tasks : {4u, 8u, 16u, 32u, 64u}) {
        if (quick && tasks > 16) break;
        HANARE_TRY_ASSIGN(const Measured measured, measure_job(interrupt, tasks));
        table.add_row(
            {std::to_string(tasks), bench::format("%.0f us", measured.barrier_us),
             bench::format("%.0f us", measured.tree_us), std::to_string(measured.tree_messages),
             bench::format("%.0f us", measured.flat_us), std::to_string(measured.flat_messages)});
        add_records(results.records, measured);
    }
    results.table =
        "Jobs below hanare launch, all tasks on this machine.  A multicast puts 1 KiB into the "
        "memory of every\ntask; messages: what its root sends and receives.\n\n" +
        table.text();
    return results;
}

}  // namespace hanare::cli
