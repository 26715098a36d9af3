// SPDX-License-Identifier: Apache-2.0
//
// What several tasks map of the same shared memory, mapped once: page tables then grow with the
// memory and not with that times the tasks.  Source: the PVAS paper, sections 4.3 and 5.3, where
// MPI's segments lie in one task's partition.  Memory only that programs share on purpose: of
// tmpfs, memfd, System V, and the files that MPI's launchers make for a job.
//
// As seen by a program: protection, advice and what one task maps over it change for all; mremap
// says ENOMEM; what is unmapped in part stays.  While a task is stopped that is in here, others map
// for themselves, and nothing is unmapped.  In tasks: no libc, no vector registers.
#pragma once

#include <cstdint>

#include "space/partition.hpp"

namespace hanare::space {

struct Task;

class SharedMappings {
public:
    // `whole`: where they lie.
    static void begin(Range whole) noexcept;

    static bool contains(uint64_t address) noexcept {
        return address >= whole_.begin && address < whole_.end;
    }

    // The answer to an mmap; 0: this one is not shared, whoever asked goes on by himself.
    static int64_t map(Task& task, const Arguments& arguments) noexcept;
    // The answer to a munmap in here.
    static int64_t unmap(Task& task, const Arguments& arguments) noexcept;

    // The answers to shmat and shmdt, as those two.
    static int64_t attach(Task& task, const Arguments& arguments) noexcept;
    static int64_t detach(Task& task, uint64_t address) noexcept;
    // How many attachments of a segment the kernel does not know of.
    static uint64_t attached_beside(uint32_t segment) noexcept;

    // The task has ended.  By the root.  False: to be tried again, somebody is stopped in here.
    static bool forget(Task& task) noexcept;

    // How many there are.
    static uint32_t count() noexcept;

private:
    inline static constinit Range whole_ = {};
};

}  // namespace hanare::space
