// SPDX-License-Identifier: Apache-2.0
//
// Group: all tasks of a job, acting together: barrier, broadcast, allgather (collectives.hpp), and
// multicasts, which one task does alone: its data goes into the window of every task, over a tree
// whose members pass it on by themselves, and the acknowledgements are combined on the way back
// (MBCF: hierarchical multicast and combining of acknowledgements).  What the root sends and
// receives depends on the tree's arity, not on how many tasks there are.
//
// Any thread.  In a child of fork every call returns FORKED.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/result.hpp"
#include "job/acknowledgements.hpp"
#include "job/collectives.hpp"
#include "job/communicator.hpp"
#include "job/courier.hpp"
#include "job/lookout.hpp"
#include "job/timed_lock.hpp"
#include "job/window.hpp"

namespace hanare::job {

class Group {
public:
    struct End {
        void operator()(Group* group) const noexcept;
    };
    using Handle = std::unique_ptr<Group, End>;

    // The communicator lives longer; its links end with the group.
    static Result<Handle> open(Communicator& communicator);
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    Result<void> barrier(uint64_t deadline_ns) { return collectives_.barrier(deadline_ns); }
    Result<void> broadcast(std::span<std::byte> data, uint32_t root, uint64_t deadline_ns) {
        return collectives_.broadcast(data, root, deadline_ns);
    }
    Result<void> allgather(std::span<const std::byte> own, std::span<std::byte> all,
                           uint64_t deadline_ns) {
        HANARE_TRY(collectives_.allgather(own, all, deadline_ns));
        return {};
    }

    // By all tasks, each with a region of its own that is exposed with the right to write, and
    // stays so until the window is closed.  Gives the window's number.
    Result<uint32_t> open_window(uint32_t region, uint64_t deadline_ns);
    // Instead of that, for a reason that this task has found itself.
    std::unexpected<Error> refuse_window(const Error& why);
    // By all tasks.  PEER_LOST: others are no more, the window is closed here all the same.  After
    // TIMEOUT (others are late, or a multicast still uses it) and BUSY it stays open; the next
    // collective that this task calls is to be this one again.
    Result<void> close_window(uint32_t window, uint64_t deadline_ns, bool& is_closed);

    struct Multicast {
        uint32_t window = 0;
        uint64_t offset = 0;
        std::span<const std::byte> data;
        uint32_t arity = Collectives::kArity;  // 1 to 32
        bool is_flat = false;                  // every task's memory by the root itself
        uint64_t deadline_ns = kNoDeadline;
    };
    using Counts = Distribution::Counts;
    // By one task, whatever the others do; its own memory gets the data, too.  One at a time in a
    // task, others wait.  Returns when the data is in the memory of all tasks.  The first failure
    // names the task: below that one others may not have it, everybody else has.
    Result<Counts> multicast_put(const Multicast& multicast);

private:
    explicit Group(Communicator& communicator);
    ~Group();

    Result<void> check(const Multicast& multicast) const;
    hanare_status put_here(const Window& window, const Multicast& multicast);
    void await(Distribution& distribution);

    Communicator& communicator_;
    Lookout lookout_;
    SlotTable slots_;
    Windows windows_;
    Collectives collectives_;
    TimedLock multicast_lock_;
    std::optional<Courier> courier_;
};

}  // namespace hanare::job
