// SPDX-License-Identifier: Apache-2.0
//
// Also in the place of system calls of tasks: no libc, no vector registers.
#include "task/directory.hpp"

namespace hanare::task {

Directory::Visit::Visit(Directory& directory, uint32_t self, const Target& target) noexcept {
    const uint64_t value = (uint64_t{target.task} + 1) << kTargetShift | target.what;
    for (std::atomic<uint64_t>& place : directory.visits_[self].targets) {
        uint64_t free = 0;
        if (!place.compare_exchange_strong(free, value)) continue;
        // The root looks at the visits after it has closed the task.
        if (directory.processes_[target.task].load() == target.process) {
            place_ = &place;
        } else {
            place.store(0);
        }
        return;
    }
}

}  // namespace hanare::task
