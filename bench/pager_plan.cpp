// SPDX-License-Identifier: Apache-2.0
#include "bench/pager_plan.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "config/rules.hpp"

namespace hanare::bench {
namespace {

constexpr uint64_t kRatio = 4;  // of data to limit
constexpr uint64_t kDataMin = 8 * kMiB;
constexpr uint64_t kDataMax = uint64_t{1} << 50;
constexpr uint64_t kSwapSlack = 64 * kMiB;

uint64_t swap_bytes(uint64_t data_bytes) { return round_up(2 * data_bytes, kMiB) + kSwapSlack; }

uint64_t disk_bytes(const PagerRequest& request, uint64_t data_bytes) {
    return request.files * data_bytes + (request.has_swap_file ? swap_bytes(data_bytes) : 0);
}

// The longest file, with what is beside the data in it.
uint64_t longest_file_bytes(const PagerRequest& request, uint64_t data_bytes) {
    if (request.has_swap_file) return swap_bytes(data_bytes);
    return request.files != 0 ? data_bytes + kSwapSlack : 0;
}

uint64_t memory_bytes(const PagerRequest& request, uint64_t data_bytes, uint64_t limit_bytes,
                      bool with_plain) {
    return request.limited_systems * limit_bytes + (with_plain ? data_bytes : 0) +
           (request.has_zram ? data_bytes : 0);  // which incompressible data fills
}

void shrink(PagerPlan& plan, uint64_t room_bytes, uint64_t needed_bytes,
            const std::string& reason) {
    plan.notes.push_back("data and local memory are smaller than asked (" +
                         format_size(plan.data_bytes) + ", " + format_size(plan.limit_bytes) +
                         "): " + reason);
    plan.data_bytes = scaled_bytes(plan.data_bytes, room_bytes, needed_bytes);
    plan.limit_bytes = scaled_bytes(plan.limit_bytes, room_bytes, needed_bytes);
}

void shrink_together(PagerPlan& plan, uint64_t room_bytes, uint64_t needed_bytes,
                     const char* what) {
    shrink(plan, room_bytes, needed_bytes,
           "together the systems need " + format_size(needed_bytes) + " of " + what +
               ", and there is room for " + format_size(room_bytes));
}

void shrink_to_files(PagerPlan& plan, const PagerRequest& request, uint64_t file_bytes_max) {
    if (const uint64_t longest = longest_file_bytes(request, plan.data_bytes);
        longest > file_bytes_max) {
        shrink(plan, less_reserve(file_bytes_max, kSwapSlack), longest - kSwapSlack,
               "one file of " + format_size(longest) + " is needed, and files may have " +
                   format_size(file_bytes_max) + " (ulimit -f)");
    }
}

// What more room would not mend.
Result<void> check_sizes(const PagerRequest& request, const PagerPlan& plan) {
    const uint64_t least = hanare_limit_min(plan.data_bytes, request.block_bytes);
    const std::string blocks = " for blocks of " + config::exact_size(request.block_bytes);
    const auto check = [&](const char* flag, uint64_t bytes, uint64_t bytes_min) -> Result<void> {
        if (bytes >= bytes_min && bytes <= kDataMax) return {};
        return config::bad_value(
            flag, config::exact_size(bytes),
            bytes < bytes_min ? "is too small" + blocks : "is too large",
            config::exact_size(bytes_min) + " to " + config::exact_size(kDataMax));
    };
    if (request.limit_bytes != 0)
        HANARE_TRY(check(request.limit_name.c_str(), request.limit_bytes, least));
    if (request.data_bytes != 0) {
        const uint64_t data_min = request.limit_bytes != 0 ? kDataMin : kRatio * least;
        HANARE_TRY(check("--size", request.data_bytes, data_min));
    }
    return {};
}

}  // namespace

Result<PagerPlan> plan_pager(const PagerRequest& request, const MachineRoom& room) {
    PagerPlan plan;
    plan.limit_bytes = request.limit_bytes != 0  ? request.limit_bytes
                       : request.data_bytes != 0 ? request.data_bytes / kRatio
                                                 : request.default_limit_bytes;
    plan.data_bytes = request.data_bytes != 0 ? request.data_bytes : kRatio * plan.limit_bytes;

    HANARE_TRY(check_sizes(request, plan));
    const uint64_t disk = room.usable_disk_bytes();
    if (const uint64_t needed = disk_bytes(request, plan.data_bytes); needed > disk) {
        shrink_together(plan, disk, needed, "disk");
    }
    shrink_to_files(plan, request, room.file_bytes_max);
    const uint64_t memory = room.usable_memory_bytes();
    bool with_plain = request.has_plain;
    if (with_plain && memory_bytes(request, plan.data_bytes, plan.limit_bytes, true) > memory) {
        with_plain = false;
        plan.no_plain = "it needs " + format_size(plan.data_bytes) + " beside the others, and " +
                        format_size(room.available_memory_bytes) + " of memory are available";
    }
    const uint64_t needed = memory_bytes(request, plan.data_bytes, plan.limit_bytes, with_plain);
    if (needed > memory) shrink_together(plan, memory, needed, "memory");

    plan.data_bytes = round_down(plan.data_bytes, kMiB);
    plan.limit_bytes = round_down(plan.limit_bytes, kOsPageBytes);
    plan.hanare_local_bytes = hanare_budget_bytes(plan.limit_bytes);
    plan.swap_bytes = swap_bytes(plan.data_bytes);
    if (plan.data_bytes < kDataMin ||
        plan.limit_bytes < hanare_limit_min(plan.data_bytes, request.block_bytes)) {
        if (longest_file_bytes(request, kDataMin) > room.file_bytes_max) {
            return fail(HANARE_STATUS_LIMIT,
                        "files may have %s, too little for these systems: raise the limit "
                        "(ulimit -f unlimited)",
                        format_size(room.file_bytes_max).c_str());
        }
        return fail(HANARE_STATUS_LIMIT,
                    "%s of disk and %s of memory are free, too little for these systems together: "
                    "free some, name another directory (--store file:DIR) or fewer of them "
                    "(--compare)",
                    format_size(room.free_disk_bytes).c_str(),
                    format_size(room.available_memory_bytes).c_str());
    }
    return plan;
}

}  // namespace hanare::bench
