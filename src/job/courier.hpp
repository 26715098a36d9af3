// SPDX-License-Identifier: Apache-2.0
//
// Courier: the thread of a task that passes on what multicasts have put into its memory, also when
// the task computes and never calls the library.  It sleeps until a parent tells it; puts the data
// on to the children out of the task's own memory; and when their subtrees have acknowledged,
// acknowledges to the parent.
//
// It waits for puts and for nobody's courier, so that couriers never wait for one another; but what
// it passes to a child that is stopped holds up other multicasts until that one's deadline.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "job/distribution.hpp"
#include "job/lookout.hpp"
#include "job/window.hpp"

namespace hanare::job {

class Courier {
public:
    // Begins at once.
    Courier(Communicator& communicator, SlotTable& slots, Lookout& lookout, Windows& windows);
    // After the links have ended, since it may wait for them.
    ~Courier();
    Courier(const Courier&) = delete;
    Courier& operator=(const Courier&) = delete;

private:
    // What was passed on, and to whom that has to be acknowledged.
    struct Pending {
        AcknowledgementPlace place;
        std::unique_ptr<Distribution> distribution;
    };

    void run();
    bool take_one();
    void accept(const Forward& forward);
    Failure check(const Forward& forward, const Window& window) const;
    void look_after();
    void ask_after(Pending& pending);
    void acknowledge(const AcknowledgementPlace& place, const Failure& failure,
                     uint64_t deadline_ns);

    Communicator& communicator_;
    SlotTable& slots_;
    Lookout& lookout_;
    Windows& windows_;
    std::atomic<bool> is_ending_{false};
    std::vector<Pending> pending_;  // the thread's own
    uint64_t ask_ns_ = 0;           // likewise: when those who are awaited are asked next
    std::thread thread_;
};

}  // namespace hanare::job
