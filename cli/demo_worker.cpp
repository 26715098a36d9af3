// SPDX-License-Identifier: Apache-2.0
#include "cli/demo_worker.hpp"

#include <bit>
#include <cstdio>
#include <memory>

#include "bench/matv.hpp"
#include "bench/memory.hpp"
#include "cli/commands.hpp"
#include "cli/moved_bytes.hpp"
#include "sys/cgroup.hpp"
#include "sys/process_usage.hpp"

namespace hanare::cli {
namespace {

constexpr uint64_t kRowsPerLine = 1024;

void tell(const nlohmann::json& message) {
    std::fputs((message.dump() + "\n").c_str(), stdout);
    std::fflush(stdout);
}

Result<std::unique_ptr<bench::Memory>> open_memory(const DemoJob& job) {
    if (job.system == "mmap") return bench::file_memory(job.directory, sys::AccessOrder::kUnknown);
    if (job.system == "mmap-seq") {
        return bench::file_memory(job.directory, sys::AccessOrder::kSequential);
    }
    if (job.system == "hanare") {
        return bench::hanare_memory({.local_bytes = job.local_bytes,
                                     .store = job.store,
                                     .block_bytes = job.block_bytes,
                                     .engine = job.engine,
                                     .read_ahead_blocks = job.read_ahead_blocks});
    }
    return bench::plain_memory(bench::HugePages::kSystem);
}

// Everything that is counted around the run.
struct Counts {
    sys::ProcessUsage usage;
    sys::DeviceBytes moved;
    hanare_counters hanare = {};
};

Backing backing_of(const DemoJob& job) {
    if (job.system == "hanare") return Backing::kStore;
    if (job.system == "swap") return Backing::kSwap;
    return job.system == "plain" || job.device.empty() ? Backing::kNone : Backing::kDevice;
}

Result<Counts> count(const DemoJob& job, bench::Memory& memory) {
    Counts counts;
    HANARE_TRY_ASSIGN(counts.usage, sys::process_usage());
    HANARE_TRY_ASSIGN(counts.moved, moved_bytes(backing_of(job), job.device, memory));
    HANARE_TRY_ASSIGN(counts.hanare, memory.counters());
    return counts;
}

DemoResult difference(const DemoJob& job, const Counts& before, const Counts& after,
                      const bench::MatvTimes& times) {
    DemoResult result;
    result.write_a_s = times.seconds[0];
    result.write_x_s = times.seconds[1];
    result.multiply_s = times.seconds[2];
    result.major_faults = after.usage.major_faults - before.usage.major_faults;
    result.peak_resident_bytes = after.usage.peak_resident_bytes;
    result.moved_known = backing_of(job) != Backing::kNone;
    result.read_bytes = after.moved.read - before.moved.read;
    result.written_bytes = after.moved.written - before.moved.written;
    if (job.system == "hanare") {
        const auto faults = [](const hanare_counters& counters) {
            return counters.read_faults + counters.write_faults + counters.upgrade_faults;
        };
        result.faults = faults(after.hanare) - faults(before.hanare);
        return result;
    }
    result.faults = after.usage.minor_faults - before.usage.minor_faults + result.major_faults;
    return result;
}

void tell_y(const double* y, uint64_t n) {
    std::vector<uint64_t> bits;
    for (uint64_t row = 0; row < n; ++row) {
        bits.push_back(std::bit_cast<uint64_t>(y[row]));
        if (bits.size() == kRowsPerLine || row + 1 == n) {
            tell({{"y", bits}});
            bits.clear();
        }
    }
}

Result<void> work(const DemoJob& job) {
    if (!job.cgroup.empty()) HANARE_TRY(sys::enter_cgroup(job.cgroup));
    HANARE_TRY_ASSIGN(const std::unique_ptr<bench::Memory> memory, open_memory(job));
    bench::MatvArrays arrays{.n = job.n};
    HANARE_TRY_ASSIGN(arrays.a, memory->allocate(job.n * job.n * sizeof(double)));
    HANARE_TRY_ASSIGN(arrays.x, memory->allocate(job.n * sizeof(double)));
    HANARE_TRY_ASSIGN(arrays.y, memory->allocate(job.n * sizeof(double)));
    HANARE_TRY_ASSIGN(const Counts before, count(job, *memory));
    const bench::MatvTimes times =
        bench::run_matv(arrays, [](bench::MatvPhase phase, uint64_t done, uint64_t total) {
            tell({{"phase", static_cast<int>(phase)}, {"done", done}, {"total", total}});
        });
    HANARE_TRY_ASSIGN(const Counts after, count(job, *memory));
    tell_y(arrays.y, job.n);
    tell({{"result", difference(job, before, after, times)}});
    return {};
}

}  // namespace

int run_demo_worker(const std::string& job) {
    const auto parsed = nlohmann::json::parse(job, nullptr, false);
    if (!parsed.is_object()) {
        return report(
            fail(HANARE_STATUS_INVALID_ARGUMENT, "--worker: only the demo itself may use it")
                .error());
    }
    const auto done = work(parsed.get<DemoJob>());
    if (done) return kExitSuccess;
    tell({{"error", done.error().text}});
    return kExitInternalFailure;
}

}  // namespace hanare::cli
