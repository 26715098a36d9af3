// SPDX-License-Identifier: Apache-2.0
#include "space/space.hpp"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>

#include "base/units.hpp"
#include "space/calls.hpp"
#include "space/interpreter.hpp"
#include "space/shared_mappings.hpp"
#include "sys/random.hpp"

namespace hanare::space {

namespace {

constexpr uint64_t kOffsetBytesMax = kGiB / 2;
// Where the stack's end is, behind a multiple of what one page table maps: what is used of it, and
// the beginning of what is behind it, have one in common, and the least of it is left empty.
constexpr uint64_t kTableBytes = 2 * kMiB;
constexpr uint64_t kBehindTableMin = kTableBytes / 8;
constexpr uint64_t kBehindTableBytes = kTableBytes / 4;
constexpr uint64_t kStackBytesMin = 256 * kKiB;
constexpr uint64_t kStackBytesDefault = 8 * kMiB;
constexpr uint64_t kStackBytesMax = kGiB;

Result<uint64_t> random_offset() {
    uint64_t random = 0;
    HANARE_TRY(sys::fill_random(std::as_writable_bytes(std::span(&random, 1))));
    const uint64_t table = random % (kOffsetBytesMax / kTableBytes) * kTableBytes;
    const uint64_t page = random / kOffsetBytesMax % (kBehindTableBytes / kOsPageBytes);
    return table + kBehindTableMin + page * kOsPageBytes;
}

// As large as the limit says: nothing of it is there before it is used.
uint64_t stack_bytes(const Inheritance* inherited) {
    rlimit limit = {.rlim_cur = kStackBytesDefault, .rlim_max = RLIM_INFINITY};
    if (inherited != nullptr) {
        limit = inherited->limits[RLIMIT_STACK];
    } else {
        getrlimit(RLIMIT_STACK, &limit);
    }
    const uint64_t bytes = std::min<uint64_t>(limit.rlim_cur, kStackBytesMax);
    return std::max(round_up(bytes, kOsPageBytes), kStackBytesMin);
}

// One page below it is closed.
Result<std::span<std::byte>> map_stack(Partition& partition, const Inheritance* inherited) {
    const uint64_t bytes = stack_bytes(inherited) + kOsPageBytes;
    const int64_t place =
        partition.map({0, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, ~uint64_t{0}, 0});
    if (place < 0) {
        return fail_errno(HANARE_STATUS_NO_MEMORY, static_cast<int>(-place), "a task's stack");
    }
    auto* const begin = reinterpret_cast<std::byte*>(place);
    mprotect(begin, kOsPageBytes, PROT_NONE);
    return std::span(begin + kOsPageBytes, bytes - kOsPageBytes);
}

void give_back(Task& task) {
    TaskTable::close(task);
    task.partition.give_back();
    task.is_owed = !SharedMappings::forget(task);
    TaskTable::end_process(task);
    task.is_left_alone = false;
    task.has_left = false;
}

}  // namespace

Result<Space> Space::create() {
    HANARE_TRY(TaskTable::make());
    begin_answers();
    return Space();
}

Result<void> Space::begin(Task& task, Beginning& beginning, const StartOfProgram& asked) {
    HANARE_TRY_ASSIGN(const StartOfProgram start, with_interpreter(asked));
    // As the kernel's link says it, which loaders derive the places of libraries from.
    static_assert(sizeof task.program >= PATH_MAX);
    if (realpath(start.path.c_str(), task.program) == nullptr) {
        return fail_errno(HANARE_STATUS_NOT_FOUND, errno, "%.200s", start.path.c_str());
    }
    HANARE_TRY_ASSIGN(const uint64_t offset, random_offset());
    task.partition.begin_task(offset);
    // Its end, and what is behind it, have page tables in common.
    HANARE_TRY_ASSIGN(const std::span<std::byte> stack,
                      map_stack(task.partition, beginning.inherited));
    HANARE_TRY_ASSIGN(const Image program, map_image(task.partition, start.path));
    Image loader;
    if (!program.loader.empty()) {
        HANARE_TRY_ASSIGN(loader, map_image(task.partition, program.loader));
    }
    HANARE_TRY_ASSIGN(const uint64_t pointer, write_start(stack, start, program, loader));
    beginning.entry = program.loader.empty() ? program.entry : loader.entry;
    beginning.stack_pointer = pointer;
    const std::string name = start.path.substr(start.path.rfind('/') + 1);
    name.copy(beginning.name, sizeof beginning.name - 1);
    const auto room = pointer - reinterpret_cast<uint64_t>(stack.data());
    beginning.task = &task;
    HANARE_TRY(begin_task(beginning, stack.first(room)));
    return {};
}

Result<uint32_t> Space::spawn(const StartOfProgram& start, uint64_t signal_mask,
                              const Inheritance* inherited) {
    HANARE_TRY_ASSIGN(Task* const free, TaskTable::find_free());
    Beginning beginning = {.signal_mask = signal_mask, .inherited = inherited};
    if (const Result<void> begun = begin(*free, beginning, start); !begun) {
        give_back(*free);
        return std::unexpected(begun.error());
    }
    return TaskTable::index_of(*free);
}

pid_t Space::process_of(uint32_t index) const {
    return static_cast<pid_t>(TaskTable::tasks()[index].process.load());
}

bool Space::settle() {
    for (Task& task : TaskTable::tasks()) {
        if (!task.is_owed) continue;
        task.is_owed = !SharedMappings::forget(task);
        if (task.is_owed) return false;
    }
    return true;
}

std::optional<uint32_t> Space::reap(pid_t process) {
    const auto tasks = TaskTable::tasks();
    const auto ended = std::ranges::find_if(tasks, [process](const Task& task) {
        return task.process == static_cast<uint32_t>(process);
    });
    if (ended == tasks.end()) return std::nullopt;
    give_back(*ended);
    return static_cast<uint32_t>(ended - tasks.begin());
}

}  // namespace hanare::space
