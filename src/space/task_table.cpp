// SPDX-License-Identifier: Apache-2.0
#include "space/task_table.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "base/units.hpp"
#include "space/shared_mappings.hpp"
#include "sys/random.hpp"

namespace hanare::space {

namespace {

// Of one partition: programs have tens, tasks of MPI hundreds.
constexpr size_t kRangesMax = 16 * 1024;

// There is one: all places are nearly three times as large as what is kept away from.
Result<uint64_t> place_away_from(uint64_t kernels) {
    constexpr uint64_t kBytes = kSpaceBytes + kSharedBytes;
    constexpr uint64_t kPlaces = (kEnd - kBytes - kFirst) / kPartitionBytes;
    for (;;) {
        uint64_t random = 0;
        HANARE_TRY(sys::fill_random(std::as_writable_bytes(std::span(&random, 1))));
        const uint64_t begin = kFirst + random % kPlaces * kPartitionBytes;
        if (begin + kBytes + kDistance <= kernels || begin >= kernels + kDistance) return begin;
    }
}

// In a page that children of fork find empty.
Result<const uint32_t*> make_mark() {
    void* const page =
        mmap(nullptr, kOsPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || madvise(page, kOsPageBytes, MADV_WIPEONFORK) != 0) {
        return fail_errno(HANARE_STATUS_NO_MEMORY, errno, "the table of tasks");
    }
    return new (page) uint32_t(1);
}

}  // namespace

Result<void> TaskTable::make() {
    const size_t ranges_bytes = kRangesMax * sizeof(Range) * kTasksMax;
    const size_t bytes = round_up(sizeof(Task) * kTasksMax, kOsPageBytes) + ranges_bytes;
    // Zeros until they are used; RLIMIT_DATA counts what may be written.
    void* const memory =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED ||
        mprotect(memory, bytes - ranges_bytes, PROT_READ | PROT_WRITE) != 0) {
        return fail_errno(HANARE_STATUS_NO_MEMORY, errno, "the table of tasks");
    }
    HANARE_TRY_ASSIGN(begin_, place_away_from(reinterpret_cast<uint64_t>(memory)));
    HANARE_TRY_ASSIGN(is_here_, make_mark());
    HANARE_TRY_ASSIGN(directory_, task::Directory::make());
    tasks_ = static_cast<Task*>(memory);
    ranges_ = reinterpret_cast<Range*>(static_cast<std::byte*>(memory) + bytes - ranges_bytes);
    SharedMappings::begin({begin_ + kSpaceBytes, begin_ + kSpaceBytes + kSharedBytes});
    return {};
}

Result<Task*> TaskTable::find_free() {
    const auto used = tasks();
    const auto free = std::ranges::find_if(
        used, [](const Task& task) { return task.process == 0 && !task.is_owed; });
    if (free != used.end()) return &*free;
    const uint32_t index = count_.load();
    if (index == kTasksMax) {
        return fail(HANARE_STATUS_LIMIT, "a space has %u tasks at most", kTasksMax);
    }
    const std::span<Range> ranges(ranges_ + index * kRangesMax, kRangesMax);
    if (mprotect(ranges.data(), ranges.size_bytes(), PROT_READ | PROT_WRITE) != 0) {
        return fail_errno(HANARE_STATUS_NO_MEMORY, errno, "the table of tasks");
    }
    Task* const task = new (&tasks_[index]) Task;
    const uint64_t begin = begin_ + index * kPartitionBytes;
    task->partition.begin(ranges, {begin, begin + kPartitionBytes});
    count_.store(index + 1);
    return task;
}

// Numbers of processes come again late, so that a place is looked for where the last use of the
// number may have left one.
void TaskTable::begin_process(Task& task, uint32_t process) noexcept {
    uint32_t at = process % kPlaces;
    for (; places_[at].task.load() != nullptr; at = (at + 1) % kPlaces) {
    }
    places_[at].process.store(process);
    places_[at].task.store(&task);
    task.process.store(process);
    directory_->note_process(index_of(task), process);
}

void TaskTable::end_process(Task& task) noexcept {
    for (Place& place : places_) {
        if (place.task.load() == &task) place.task.store(nullptr);
    }
    task.process.store(0);
    directory_->forget(index_of(task));
}

Task* TaskTable::of_process(uint32_t process) noexcept {
    uint32_t at = process % kPlaces;
    for (uint32_t tried = 0; tried < kPlaces; ++tried, at = (at + 1) % kPlaces) {
        const uint32_t found = places_[at].process.load(std::memory_order_acquire);
        if (found == 0) return nullptr;
        Task* const task = places_[at].task.load(std::memory_order_acquire);
        if (found == process && task != nullptr) return task;
    }
    return nullptr;
}

}  // namespace hanare::space
