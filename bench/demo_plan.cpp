// SPDX-License-Identifier: Apache-2.0
#include "bench/demo_plan.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "bench/matv.hpp"
#include "config/rules.hpp"

namespace hanare::bench {
namespace {

constexpr uint64_t kOrderMultiple = 64;  // rows of whole cache lines
constexpr uint64_t kMatrixMin = 8 * kMiB;
constexpr uint64_t kExtentAlignment = 4 * kMiB;  // of a store
constexpr uint64_t kFileSlack = 64 * kMiB;       // vectors, rounding, swap header

// What the machine leaves for the matrix and for a limited system's memory.
struct Room {
    uint64_t file_bytes = 0;
    uint64_t memory_bytes = 0;
    bool is_limited = false;  // `file_bytes` by the process's limit, and not by the disk
};

Room room_of(const MachineRoom& machine) {
    Room room;
    // One file at a time: the store, the mapped file or the swap file, each as large as the matrix.
    room.file_bytes = less_reserve(machine.usable_disk_bytes(), kFileSlack);
    const uint64_t allowed = less_reserve(machine.file_bytes_max, kFileSlack);
    room.is_limited = allowed < room.file_bytes;
    room.file_bytes = std::min(room.file_bytes, allowed);
    room.memory_bytes = machine.usable_memory_bytes();
    return room;
}

uint64_t limit_min(const DemoRequest& request, const Room& room) {
    return hanare_limit_min(std::min(request.matrix_bytes, room.file_bytes), request.block_bytes);
}

std::unexpected<Error> no_room(const std::string& directory, const MachineRoom& machine,
                               bool is_limited) {
    if (is_limited) {
        return fail(HANARE_STATUS_LIMIT,
                    "files may have %s, the demo needs %s at least: raise the limit (ulimit -f "
                    "unlimited)",
                    format_size(machine.file_bytes_max).c_str(),
                    format_size(kMatrixMin + kFileSlack).c_str());
    }
    return fail(HANARE_STATUS_LIMIT,
                "%s has %s free, the demo needs %s at least: free some room there or name another "
                "directory (--store file:DIR)",
                directory.c_str(), format_size(machine.free_disk_bytes).c_str(),
                format_size(kMatrixMin + kFileSlack + kRoomReserve).c_str());
}

// What smaller sizes cannot mend.
Result<void> check(const DemoRequest& request, const MachineRoom& machine, const Room& room) {
    const uint64_t least = limit_min(request, room);
    const std::string blocks = config::exact_size(request.block_bytes);
    if (request.matrix_bytes < kMatrixMin) {
        return config::bad_value("--size", config::exact_size(request.matrix_bytes), "is too small",
                                 config::exact_size(kMatrixMin) + " or more");
    }
    if (room.file_bytes < kMatrixMin) return no_room(request.directory, machine, room.is_limited);
    if (room.memory_bytes < least) {
        return fail(HANARE_STATUS_LIMIT,
                    "%s of memory are available, the demo needs %s at least with blocks of %s: "
                    "end other programs or take smaller blocks (--block)",
                    format_size(machine.available_memory_bytes).c_str(),
                    format_size(least + kRoomReserve).c_str(), blocks.c_str());
    }
    if (request.local_is_default) return {};
    const bool is_small = request.local_bytes < least;
    if (!is_small && request.local_bytes <= room.memory_bytes) return {};
    return config::bad_value(
        request.local_name, config::exact_size(request.local_bytes),
        is_small ? "is too small for blocks of " + blocks : "is more than is available",
        config::exact_size(least) + " to " +
            config::exact_size(round_down(room.memory_bytes, kMiB)));
}

}  // namespace

Result<DemoPlan> plan_demo(const DemoRequest& request, const MachineRoom& machine) {
    const Room room = room_of(machine);
    HANARE_TRY(check(request, machine, room));
    const uint64_t least = limit_min(request, room);
    DemoPlan plan;
    uint64_t matrix = request.matrix_bytes;
    uint64_t limit = std::max(request.local_bytes, least);
    if (matrix > room.file_bytes) {
        if (request.local_is_default) limit = scaled_bytes(limit, room.file_bytes, matrix);
        matrix = room.file_bytes;
        plan.notes.push_back(
            "the matrix is smaller than the asked " + format_size(request.matrix_bytes) + ": " +
            (room.is_limited
                 ? "files may have " + format_size(machine.file_bytes_max) + " (ulimit -f)"
                 : format_size(machine.free_disk_bytes) + " of disk are free"));
    }
    if (limit > room.memory_bytes) {
        matrix = scaled_bytes(matrix, room.memory_bytes, limit);
        limit = room.memory_bytes;
        plan.notes.push_back("matrix and local memory are smaller than asked: " +
                             format_size(machine.available_memory_bytes) +
                             " of memory are available");
    }
    limit = std::max(limit, least);
    plan.n = matv_order(std::max(matrix, kMatrixMin), kOrderMultiple);
    plan.matrix_bytes = plan.n * plan.n * sizeof(double);
    plan.limit_bytes = round_down(limit, kOsPageBytes);
    plan.hanare_local_bytes = hanare_budget_bytes(plan.limit_bytes);
    // A region each for the matrix and two vectors.
    const auto extent_bytes = [&](uint64_t bytes) {
        return round_up(round_up(bytes, request.block_bytes), kExtentAlignment);
    };
    plan.store_bytes = extent_bytes(plan.matrix_bytes) + 2 * extent_bytes(plan.n * sizeof(double));
    plan.swap_bytes = round_up(plan.matrix_bytes, kMiB) + kFileSlack;
    if (plan.matrix_bytes <= plan.hanare_local_bytes) {
        plan.notes.push_back(
            "the matrix fits into local memory, which shows nothing: take a larger --size or a "
            "smaller --local");
    }
    if (plan.matrix_bytes > room.memory_bytes) {
        plan.no_plain = "it needs " + format_size(plan.matrix_bytes) + ", and " +
                        format_size(machine.available_memory_bytes) + " of memory are available";
    }
    return plan;
}

}  // namespace hanare::bench
