// SPDX-License-Identifier: Apache-2.0
//
// Window: one exposed region of every task of the job, which all of them know: what multicasts go
// to.  And the windows that a task has.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "fabric/capability.hpp"

namespace hanare::job {

struct Window {
    uint32_t number = 0;                   // the same in all tasks
    uint32_t region = 0;                   // this task's
    std::span<std::byte> memory;           // of it
    std::vector<fabric::Capability> keys;  // to write, of all tasks
};

// Any thread.
class Windows {
public:
    // Somebody uses it: it stays as long as this does.
    using Use = std::shared_ptr<const Window>;

    void add(Use window);
    // Null if there is none.
    Use use(uint32_t number);
    // That all tasks have come to close it.
    void note_all_came(uint32_t number);
    bool have_all_come(uint32_t number);
    // Nobody uses it from now on; waits for those who do.  TIMEOUT, and it stays.
    Result<void> remove(uint32_t number, uint64_t deadline_ns);

private:
    struct Entry {
        Use window;
        uint32_t users = 0;
        bool is_closing = false;
        bool have_all_come = false;
    };
    void end_use(uint32_t number) noexcept;

    std::mutex lock_;
    std::condition_variable unused_;
    std::map<uint32_t, Entry> entries_;  // under lock_
};

}  // namespace hanare::job
