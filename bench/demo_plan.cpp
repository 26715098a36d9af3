// SPDX-License-Identifier: Apache-2.0
#include "bench/demo_plan.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "bench/matv.hpp"

namespace hanare::bench {
namespace {

constexpr uint64_t kOrderMultiple = 64;  // rows of whole cache lines
constexpr uint64_t kMatrixMin = 8 * kMiB;
constexpr uint64_t kMemoryReserve = 256 * kMiB;  // for everything else on the machine
constexpr uint64_t kDiskReserve = 256 * kMiB;
constexpr uint64_t kLimitOverhead = 16 * kMiB;  // program, stacks, page tables
constexpr uint64_t kFramesMin = 16;             // hanare_pool_options
constexpr uint64_t kFileSlack = 64 * kMiB;      // vectors, rounding, swap header

uint64_t budget_below(uint64_t limit_bytes) {
    const uint64_t overhead = limit_bytes / 20 + kLimitOverhead;
    return limit_bytes > overhead ? limit_bytes - overhead : 0;
}

uint64_t less(uint64_t value, uint64_t reserve) { return value > reserve ? value - reserve : 0; }

uint64_t scaled(uint64_t value, uint64_t numerator, uint64_t denominator) {
    const double share = static_cast<double>(numerator) / static_cast<double>(denominator);
    return round_down(static_cast<uint64_t>(static_cast<double>(value) * share), kMiB);
}

}  // namespace

Result<DemoPlan> plan_demo(const DemoRequest& request, const MachineRoom& room) {
    DemoPlan plan;
    uint64_t matrix = request.matrix_bytes;
    uint64_t limit = request.local_bytes;
    // One file at a time: the store, the mapped file or the swap file, each as large as the matrix.
    const uint64_t disk = less(room.free_disk_bytes, kDiskReserve + kFileSlack);
    if (matrix > disk) {
        if (request.local_is_default) limit = scaled(limit, disk, matrix);
        matrix = disk;
        plan.notes.push_back("the matrix is smaller than the asked " +
                             format_size(request.matrix_bytes) + ": " +
                             format_size(room.free_disk_bytes) + " of disk are free");
    }
    const uint64_t memory = less(room.available_memory_bytes, kMemoryReserve);
    if (limit > memory) {
        matrix = scaled(matrix, memory, limit);
        limit = memory;
        plan.notes.push_back("matrix and local memory are smaller than asked: " +
                             format_size(room.available_memory_bytes) + " of memory are available");
    }
    plan.n = matv_order(matrix, kOrderMultiple);
    plan.matrix_bytes = plan.n * plan.n * sizeof(double);
    plan.limit_bytes = round_down(limit, kOsPageBytes);
    plan.hanare_local_bytes = round_down(budget_below(plan.limit_bytes), kOsPageBytes);
    plan.swap_bytes = round_up(plan.matrix_bytes, kMiB) + kFileSlack;
    if (plan.matrix_bytes < kMatrixMin) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "--size %s: at least %s are needed, and room for them (%s of disk and %s of "
                    "memory are free)",
                    format_size(request.matrix_bytes).c_str(),
                    format_size(kMatrixMin + kMiB).c_str(),
                    format_size(room.free_disk_bytes).c_str(),
                    format_size(room.available_memory_bytes).c_str());
    }
    // Twice the least, because the pool's own tables count, too.
    if (plan.hanare_local_bytes < 2 * kFramesMin * request.block_bytes) {
        return fail(
            HANARE_STATUS_INVALID_ARGUMENT,
            "--local %s: less 5 %% and 16 MiB this must hold %u blocks of %s; take more, or "
            "a smaller --block",
            format_size(plan.limit_bytes).c_str(), static_cast<unsigned>(2 * kFramesMin),
            format_size(request.block_bytes).c_str());
    }
    if (plan.matrix_bytes > memory) {
        plan.no_plain = "it needs " + format_size(plan.matrix_bytes) + ", and " +
                        format_size(room.available_memory_bytes) + " of memory are available";
    }
    return plan;
}

}  // namespace hanare::bench
