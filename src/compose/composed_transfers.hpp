// SPDX-License-Identifier: Apache-2.0
//
// What faulting threads start on a composed store: one transfer or several of members' for each.
// Only what can begin at once: not what needs to read before it writes, nor what lies in a group
// that is closed.  Of parity nothing is started while a member is lost.
//
// A transfer that has failed in a member is tried again with all that redundancy can do, by who
// completes it.  Where there is redundancy they are handed out in the order in which they were
// started; members of a list may be as different as a server and a disk, and do not wait for each
// other.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "compose/composed_store.hpp"
#include "store/store.hpp"
#include "sys/lock.hpp"
#include "sys/memory.hpp"

namespace hanare::compose {

class ComposedTransfers final : public store::SharedTransfers, private Healer::Listener {
public:
    // nullptr: there is one already, no memory for it, or a member on which nothing can be started.
    static std::unique_ptr<store::SharedTransfers> open(ComposedStore& store);
    // Nobody waits any more: where something is under way servers are given up, and files awaited.
    ~ComposedTransfers() override;

    size_t start(store::IoRequest* const* requests, size_t count) noexcept override;
    bool is_refused() const noexcept override;
    store::IoRequest* next_completed(bool wait) noexcept override;
    bool has_completed() const noexcept override;

private:
    // Completed by who takes; by who starts, where the member would not take it.
    enum class State : uint8_t { kNew, kStarted, kDone };
    // A transfer of a member's.
    struct Part : store::IoRequest {
        Member* member = nullptr;
        bool is_handed_over = false;
        Part* next_refused = nullptr;
        std::atomic<State> state{State::kNew};
    };
    enum class Stage : uint8_t {
        kUnderWay,
        kSettled,  // the request has its status, and the group is left
        kTaken,
    };
    // A transfer of the caller's, of parts that were numbered one after the other.
    struct Job {
        store::IoRequest* request = nullptr;
        Group group;
        uint64_t first_part = 0;
        uint32_t parts = 0;
        uint32_t parities = 0;
        Stage stage = Stage::kUnderWay;  // by who takes
    };
    // To be the only one who takes.  Nobody waits for that.
    class Taking {
    public:
        explicit Taking(std::atomic<bool>& taking) noexcept
            : taking_(taking), is_ours_(!taking.exchange(true, std::memory_order_acquire)) {}
        ~Taking() {
            if (is_ours_) taking_.store(false, std::memory_order_release);
        }
        Taking(const Taking&) = delete;
        Taking& operator=(const Taking&) = delete;
        bool is_ours() const noexcept { return is_ours_; }

    private:
        std::atomic<bool>& taking_;
        const bool is_ours_;
    };

    static constexpr size_t kParts = 2048;
    static constexpr size_t kParityBytes = 4 * kMiB;

    explicit ComposedTransfers(ComposedStore& store);

    bool is_list() const noexcept { return store_.layout().kind == Kind::kList; }
    Job& job(uint64_t number) const noexcept { return jobs_[number % kInFlightMax]; }
    Part& part(uint64_t number) const noexcept { return parts_[number % kParts]; }
    bool is_under_way() const noexcept { return jobs_taken_.load() != jobs_begun_.load(); }
    bool add(store::IoRequest& request) noexcept;
    bool plan(Job& job) noexcept;
    void add_part(Job& job, uint32_t role, uint64_t offset, std::byte* memory,
                  size_t bytes) noexcept;
    Part* hand_over(uint64_t first) noexcept;
    static Part* hand_over(Member& member, store::IoRequest* const* parts, size_t count,
                           Part* refused) noexcept;
    static void carry_out(Part* refused) noexcept;
    const Part* first_undone(const Job& job) const noexcept;
    bool are_parts_done(const Job& job, bool wait) noexcept;
    void collect() noexcept;
    Job* first_done() noexcept;
    void settle(Job& job) noexcept;
    store::IoRequest* hand_out(Job& job) noexcept;
    void group_wanted() noexcept override;

    ComposedStore& store_;
    const std::unique_ptr<Job[]> jobs_;
    const std::unique_ptr<Part[]> parts_;
    sys::Mapping parity_memory_;
    size_t parity_count_ = 0;
    std::atomic<bool> is_refused_{false};  // a member has

    sys::RankedLock start_lock_;
    uint64_t parts_begun_ = 0;  // by who starts, as all that have begun
    uint64_t parities_begun_ = 0;
    std::atomic<uint64_t> jobs_begun_{0};
    mutable std::atomic<bool> taking_{false};
    std::atomic<uint64_t> jobs_taken_{0};  // by who takes, as all that were taken
    std::atomic<uint64_t> parts_taken_{0};
    std::atomic<uint64_t> parities_taken_{0};
};

}  // namespace hanare::compose
