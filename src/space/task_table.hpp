// SPDX-License-Identifier: Apache-2.0
//
// The tasks of the space of this process, in memory that all of them see.  Written by the root.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "space/layout.hpp"
#include "space/partition.hpp"
#include "task/directory.hpp"

namespace hanare::space {

struct Task {
    std::atomic<uint32_t> process{0};  // 0: there is none
    Partition partition;
    // What its children of fork get is its own to say (forks.hpp).
    std::atomic<bool> is_left_alone{false};
    // By exec it becomes a program that has nothing here, says the task.
    std::atomic<bool> has_left{false};
    bool is_owed = false;     // shared mappings are to be taken from it still, says the root
    char program[4096] = {};  // the path of what runs, absolute
    uint64_t shared[kSharedMax / 64] = {};  // a bit for each of SharedMappings that it has
};

class TaskTable {
public:
    // Before any task; once per process.
    static Result<void> make();
    // One that is none now, by the root.  LIMIT: there are kTasksMax.
    static Result<Task*> find_free();

    // The task's process has begun, says that process; has ended, says the root.
    static void begin_process(Task& task, uint32_t process) noexcept;
    static void end_process(Task& task) noexcept;
    // Before that: who looks at its memory has gone, says the root.
    static void close(Task& task) noexcept { directory_->close(index_of(task)); }

    // The task with that process; null where there is none.  No libc, no vector registers, nor
    // those after it.
    static Task* of_process(uint32_t process) noexcept;
    // Whether this is the memory of the space, and not a copy that a child of fork has.
    static bool is_here() noexcept { return *is_here_ != 0; }

    // The task whose partition has the address; null where it is none's.
    static Task* around(uint64_t address) noexcept {
        if (address < begin_ || address - begin_ >= kSpaceBytes) return nullptr;
        return &tasks_[(address - begin_) / kPartitionBytes];
    }
    // What tasks know of each other.
    static task::Directory& directory() noexcept { return *directory_; }
    // All partitions.
    static Range whole() noexcept { return {begin_, begin_ + kSpaceBytes}; }
    // Those that ever were.
    static std::span<Task> tasks() noexcept { return {tasks_, count_.load()}; }

    static uint32_t index_of(const Task& task) noexcept {
        return static_cast<uint32_t>(&task - tasks_);
    }

private:
    // Open addressing; places that were used once stay, so that who looks goes on.
    static constexpr uint32_t kPlaces = 4 * kTasksMax;
    struct Place {
        std::atomic<uint32_t> process;  // 0: never used
        std::atomic<Task*> task;        // null: has ended
    };

    inline static constinit Place places_[kPlaces] = {};
    inline static constinit const uint32_t* is_here_ = nullptr;
    inline static constinit Task* tasks_ = nullptr;
    inline static constinit std::atomic<uint32_t> count_{0};
    inline static constinit Range* ranges_ = nullptr;  // kRangesMax for each
    inline static constinit task::Directory* directory_ = nullptr;
    inline static constinit uint64_t begin_ = 0;
};

}  // namespace hanare::space
