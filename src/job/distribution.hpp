// SPDX-License-Identifier: Apache-2.0
//
// Distribution: what one task does for a multicast, be it the root or one that passes it on: it
// puts the data into the memory of its children in the tree, tells those that have children
// themselves, and waits for their acknowledgements, each of which speaks for a subtree.  A child
// without children needs no telling: that the put was answered is its acknowledgement.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "job/acknowledgements.hpp"
#include "job/communicator.hpp"
#include "job/notice.hpp"
#include "job/tree.hpp"
#include "job/window.hpp"

namespace hanare::job {

// What the courier is told by a parent.
struct Forward {
    uint32_t window = 0;
    uint32_t root = 0;
    uint32_t arity = 0;
    uint32_t parent = 0;
    uint32_t slot = 0;   // where the parent wants the acknowledgement
    uint32_t index = 0;  // the bit there
    uint32_t is_for_courier = 0;
    uint32_t timeout_ms = 0;  // from now on; UINT32_MAX: none
    uint64_t offset = 0;
    uint64_t bytes = 0;
};
static_assert(sizeof(Forward) == 48);

class Distribution {
public:
    static constexpr uint32_t kArityMax = 32;

    struct Plan {
        Windows::Use window;
        uint32_t root = 0;
        uint32_t arity = 0;
        uint64_t offset = 0;
        std::span<const std::byte> data;
        uint64_t deadline_ns = kNoDeadline;
        bool is_for_courier = false;  // who waits for the acknowledgements
    };
    struct Counts {
        uint64_t puts = 0;
        uint64_t notices = 0;
        uint64_t acknowledgements = 0;
    };

    Distribution(Communicator& communicator, SlotTable& slots, Plan plan,
                 const std::vector<Tree::Child>& children);
    ~Distribution();
    Distribution(const Distribution&) = delete;
    Distribution& operator=(const Distribution&) = delete;

    const Plan& plan() const noexcept { return plan_; }
    // Puts and tells, and waits until that is done.
    void send();
    // Whether nobody's acknowledgement is awaited any more.
    bool is_over() const noexcept { return missing() == 0; }
    void awaited(std::vector<uint32_t>& ranks) const;
    // Changes, waking, with acknowledgements.  Only where is_over() is false.
    std::atomic<uint32_t>& bits() const noexcept;
    // Waits no longer for that one's.
    void give_up(uint32_t rank, hanare_status why) noexcept;
    void give_up_all(hanare_status why) noexcept;
    // The first, here or below.
    Failure failure() const noexcept;
    Counts counts() const noexcept;

private:
    struct Branch {
        Tree::Child child;
        uint32_t index = 0;  // of its bit, where it has children
        const Peer::Way* way = nullptr;
        fabric::Operation put;
        std::optional<Notice> notice;
    };
    bool has_children(const Branch& branch) const noexcept { return branch.child.tasks > 1; }
    uint32_t missing() const noexcept;
    void begin(Branch& branch);
    void finish(Branch& branch);

    Communicator& communicator_;
    SlotTable& slots_;
    const Plan plan_;
    std::vector<std::unique_ptr<Branch>> branches_;
    std::optional<uint32_t> slot_;
    uint32_t told_ = 0;      // bits that may come
    uint32_t expected_ = 0;  // of these, those that are waited for
    Failure failure_;
};

}  // namespace hanare::job
