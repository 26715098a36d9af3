// SPDX-License-Identifier: Apache-2.0
//
// What the tasks of a space know of each other: which processes they are, and addresses that they
// have published under names.  It lies in the root's memory, and the auxiliary vector says where;
// programs that a task becomes by exec have no such entry, and children of fork find it empty.
// Tasks and their root have the same version of this.
//
// A task that is killed at any moment leaves nothing locked and no name of its own: what it had is
// marked as its, and the root takes it back.  One that is stopped while it publishes keeps others
// from it until it goes on.
//
// Who looks at another task's memory by its own means visits it (Visit): meanwhile the root leaves
// the memory of a task that has ended where it is.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.hpp"
#include "task/limits.hpp"

namespace hanare::task {

class Directory {
public:
    // The type of its entry in the auxiliary vector.
    static constexpr uint64_t kAuxiliaryType = 0x48414e53;
    static constexpr size_t kNameBytesMax = 47;

    // For the root.
    static Result<Directory*> make();
    // Of the space that this process is a task of; null where it is none.  Any thread.
    static Directory* here() noexcept;

    // Of the root, and of a process that begins: no libc.
    void note_process(uint32_t task, uint32_t process) noexcept { processes_[task].store(process); }
    // For the root, whose child its process was: that has ended, nobody begins to visit it any
    // more, and its names are gone.  Waits for those who do, though not for long: they may be
    // stopped.
    void close(uint32_t task) noexcept;
    // For the root, after that: nothing in here is the task's.
    void forget(uint32_t task) noexcept;

    std::optional<uint32_t> task_of(uint32_t process) const noexcept;

    // By a task, any thread of it; what is published is only kept.  INVALID_ARGUMENT: no name;
    // BUSY: there is one; LIMIT.
    Result<void> publish(uint32_t task, std::string_view name, uint64_t address);
    // NOT_FOUND: it is none of this task's.
    Result<void> withdraw(uint32_t task, std::string_view name);
    // Waits until somebody has published it; negative: as long as it takes.  TIMEOUT.
    Result<uint64_t> find(std::string_view name, int timeout_ms) const;

    // Of memory of the task with that process, by one that is `self`.  Async-signal-safe.
    class Visit {
    public:
        struct Target {
            uint32_t task;
            uint32_t process;
            uint32_t what;  // of its memory: a number of its own, not 0
        };
        Visit(Directory& directory, uint32_t self, const Target& target) noexcept;
        ~Visit() {
            if (place_ != nullptr) place_->store(0, std::memory_order_release);
        }
        Visit(const Visit&) = delete;
        Visit& operator=(const Visit&) = delete;

        // False: that process has ended, or too many threads are on visits.
        bool has_begun() const noexcept { return place_ != nullptr; }

    private:
        std::atomic<uint64_t>* place_ = nullptr;
    };
    // For who is visited: whether anybody is, there or anywhere.
    bool is_visited(uint32_t task, uint32_t what) const noexcept;
    bool is_visited(uint32_t task) const noexcept;

private:
    static constexpr uint64_t kMagic = 0x3245434150534e48;  // "HNSPACE2"
    static constexpr uint32_t kNamesMax = 4096;

    using Name = std::array<uint64_t, (kNameBytesMax + 1) / sizeof(uint64_t)>;

    struct Entry {
        std::atomic<uint32_t> version;  // odd: it is published, and changes when it no longer is
        std::atomic<uint32_t> owner;    // index of a task + 1; 0: nobody's
        std::atomic<uint64_t> address;
        std::array<std::atomic<uint64_t>, std::tuple_size_v<Name>> name;
    };
    static_assert(sizeof(Entry) == 64);

    // Of the threads of one task.
    struct alignas(64) Visits {
        std::array<std::atomic<uint64_t>, 8> targets;  // 0: none; (task + 1) << 32 | what
    };
    static constexpr int kTargetShift = 32;

    static bool is_visit(const Visits& visits, uint32_t task) noexcept;
    bool is_visited_by_living(uint32_t task) const noexcept;
    void take_back_names(uint32_t task) noexcept;

    class Turn;
    static Result<Name> as_words(std::string_view name);
    static bool has_name(const Entry& entry, const Name& name) noexcept;
    static void take_back(Entry& entry) noexcept;
    Entry* published(const Name& name) noexcept;
    std::optional<uint64_t> look_up(const Name& name) const noexcept;

    uint64_t magic_ = 0;
    std::atomic<uint32_t> turn_{0};          // who changes entries: index of a task + 1
    std::atomic<uint32_t> publications_{0};  // changes with each
    std::atomic<uint32_t> used_{0};          // entries that were ever published
    std::array<std::atomic<uint32_t>, kTasksMax> processes_{};
    std::array<Visits, kTasksMax> visits_{};
    std::array<Entry, kNamesMax> entries_{};
};

}  // namespace hanare::task
