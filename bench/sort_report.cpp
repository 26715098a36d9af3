// SPDX-License-Identifier: Apache-2.0
#include "bench/sort_report.hpp"

#include "base/units.hpp"
#include "bench/statistics.hpp"
#include "bench/table.hpp"

namespace hanare::bench {
namespace {

constexpr uint64_t kLimitDivisor = 4;
// Of GNU sort with two threads: a row of 32 bytes in its table, and another one for merging.
constexpr uint64_t kSortBytesPerLine = 64;
constexpr uint64_t kSortSlack = 16 * kMiB;
constexpr uint64_t kMemoryPerText = 3;  // lines of 32 characters
constexpr uint64_t kSizeStep = 64 * kMiB;

const SortRun* find(const std::vector<SortRun>& runs, const std::string& name) {
    for (const SortRun& run : runs) {
        if (run.system == name) return &run;
    }
    return nullptr;
}

// What to do about it.
std::string remedy(uint64_t text_bytes, uint64_t have, uint64_t need) {
    const double share = static_cast<double>(have) / static_cast<double>(need);
    const uint64_t fitting =
        round_down(static_cast<uint64_t>(static_cast<double>(text_bytes) * share), kSizeStep);
    return fitting == 0 ? ""
                        : format(" or sort less (--size %lluM)",
                                 static_cast<unsigned long long>(fitting / kMiB));
}

}  // namespace

uint64_t sort_limit_bytes(uint64_t plain_peak_bytes) {
    return round_down(plain_peak_bytes / kLimitDivisor, kOsPageBytes);
}

uint64_t sort_memory_estimate(uint64_t text_bytes) {
    return text_bytes * kMemoryPerText + kSortSlack;
}

uint64_t sort_buffer_bytes(uint64_t text_bytes, uint64_t lines) {
    return text_bytes + lines * kSortBytesPerLine + kSortSlack;
}

uint64_t sort_disk_bytes(uint64_t text_bytes) {
    return 2 * text_bytes + sort_memory_estimate(text_bytes);
}

Result<void> check_sort_room(uint64_t text_bytes, const std::string& directory,
                             const MachineRoom& machine) {
    const std::string size = format_size(text_bytes);
    const uint64_t disk = sort_disk_bytes(text_bytes);
    if (machine.usable_disk_bytes() < disk) {
        return fail(HANARE_STATUS_LIMIT,
                    "%.150s has %s free, sorting %s takes %s there: free some room, name another "
                    "directory (--store file:DIR)%s",
                    directory.c_str(), format_size(machine.free_disk_bytes).c_str(), size.c_str(),
                    format_size(disk + kRoomReserve).c_str(),
                    remedy(text_bytes, machine.usable_disk_bytes(), disk).c_str());
    }
    const uint64_t memory = sort_memory_estimate(text_bytes);
    if (machine.usable_memory_bytes() < memory) {
        return fail(HANARE_STATUS_LIMIT,
                    "%s of memory are available, sorting %s plainly, which is measured first, "
                    "takes %s: end other programs%s",
                    format_size(machine.available_memory_bytes).c_str(), size.c_str(),
                    format_size(memory + kRoomReserve).c_str(),
                    remedy(text_bytes, machine.usable_memory_bytes(), memory).c_str());
    }
    if (machine.file_bytes_max < memory) {
        return fail(HANARE_STATUS_LIMIT,
                    "files may have %s, sorting %s takes one of %s: raise the limit (ulimit -f "
                    "unlimited)%s",
                    format_size(machine.file_bytes_max).c_str(), size.c_str(),
                    format_size(memory).c_str(),
                    remedy(text_bytes, machine.file_bytes_max, memory).c_str());
    }
    return {};
}

std::string sort_table(const std::vector<SortRun>& runs) {
    const SortRun* const plain = find(runs, "plain");
    Table table({"sort", "time", "slowdown", "peak RSS", "result"});
    for (const SortRun& run : runs) {
        const bool has_ratio = run.is_done && plain != nullptr && plain->seconds > 0;
        table.add_row({run.system, run.seconds > 0 ? format_seconds(run.seconds) : "-",
                       has_ratio ? format_ratio(run.seconds / plain->seconds) : "-",
                       run.peak_resident_bytes > 0 ? format_size(run.peak_resident_bytes) : "-",
                       run.result});
    }
    return table.text();
}

std::string sort_sentence(const std::vector<SortRun>& runs, uint64_t text_bytes,
                          uint64_t limit_bytes) {
    const SortRun* const hanare = find(runs, "hanare");
    const SortRun* const plain = find(runs, "plain");
    if (hanare == nullptr || plain == nullptr || !hanare->is_done || !plain->is_done) {
        return "Hanare did not finish.";
    }
    std::string text = "Under hanare run, sort finished " + format_size(text_bytes) + " in " +
                       format_size(limit_bytes) + " of memory, a quarter of what it takes, in " +
                       format_seconds(hanare->seconds) + ", " +
                       format_ratio(hanare->seconds / plain->seconds) + " the time of plain memory";
    const SortRun* const swap = find(runs, "swap");
    if (swap == nullptr || swap->seconds == 0) return text + ".";
    const double ratio = swap->seconds / hanare->seconds;
    if (!swap->is_done) {
        return text + "; with swap, after " + format_seconds(swap->seconds) + ": " + swap->result +
               ".";
    }
    return text + "; with swap it was " + format_ratio(ratio > 1 ? ratio : 1 / ratio) +
           (ratio > 1 ? " slower." : " faster.");
}

std::vector<Record> sort_records(const std::vector<SortRun>& runs, const nlohmann::json& params) {
    std::vector<Record> records;
    for (const SortRun& run : runs) {
        if (!run.is_done) continue;
        nlohmann::json all = params;
        all["limited"] = run.is_limited;
        const auto add = [&](const char* metric, const char* unit, double value) {
            records.push_back({"demo", "sort", run.system, metric, unit, summarize({value}), all});
        };
        add("time", "s", run.seconds);
        add("peak_resident", "B", static_cast<double>(run.peak_resident_bytes));
    }
    return records;
}

}  // namespace hanare::bench
