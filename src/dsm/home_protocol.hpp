// SPDX-License-Identifier: Apache-2.0
//
// HomeProtocol: tasks that have no memory in common, over sockets: home-based lazy release
// consistency.  Barriers are by dissemination (Hensgen, Finkel, Manber 1988): in round k a task
// tells the one 2^k behind it all that it knows by then, in one message: who has written what, that
// is the part of the notice logs that is new since the last barrier.  With two tasks that is one
// message in each direction.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "dsm/counters.hpp"
#include "dsm/home_memory.hpp"
#include "dsm/home_waits.hpp"
#include "dsm/locks.hpp"
#include "dsm/mail.hpp"
#include "dsm/notices.hpp"
#include "dsm/peers.hpp"
#include "dsm/protocol.hpp"
#include "dsm/run_list.hpp"
#include "dsm/segment.hpp"
#include "job/lookout.hpp"

namespace hanare::dsm {

class HomeProtocol final : public Protocol {
public:
    // Exposes this task's memory; complete() before anything else, once all have.
    static Result<std::unique_ptr<HomeProtocol>> make(job::Communicator& communicator,
                                                      Segment& segment, Counters& counters);
    const PeerKeys& own_keys() const noexcept { return own_keys_; }
    Result<void> complete(const std::vector<PeerKeys>& keys, uint64_t deadline_ns);

    Result<void> barrier(uint32_t id) override;
    Result<void> lock(uint32_t lock) override { return locks_.lock(lock); }
    Result<void> unlock(uint32_t lock) override { return locks_.unlock(lock); }
    Waits& waits() noexcept override { return waits_; }
    hanare_status resolve(const std::byte* address, bool write) noexcept override {
        return memory_->resolve(segment_.block_of(address), write);
    }
    uint32_t lost() const noexcept override { return peers_.lost(); }

    Peers& peers() noexcept { return peers_; }
    // What peers ask of this protocol; the rest is not for it.
    bool knows(QuestionKind kind) const noexcept;
    hanare_status answer(const Question& question, std::span<const std::byte> rest,
                         std::span<std::byte> room, size_t& bytes);

private:
    // At the beginning of a barrier's message; what it says of all tasks follows, and then what was
    // added to their logs since the last barrier, unless that is too long.
    struct BarrierHead {
        uint32_t number = 0;
        uint32_t id = 0;
        uint32_t is_wrong = 0;  // some task has another id
        uint32_t has_logs = 0;
    };
    // More than that of a barrier are fetched.
    static constexpr size_t kUpdatesAtOnce = 1024;
    // Of what is learnt at once: all rings of a large job, twice.
    static constexpr uint32_t kLearntRunsMax = 1u << 20;

    HomeProtocol(job::Communicator& communicator, Segment& segment, Counters& counters,
                 Notices notices, Mail mail, RunList changed, RunList learnt,
                 sys::SparseMemory updates_room);

    hanare_status release();
    size_t tell(std::span<const uint64_t> told, std::span<std::byte> room, bool waits);
    hanare_status acquire(uint32_t from, std::span<const uint64_t> told,
                          std::span<const std::byte> text);
    hanare_status learn(uint32_t from, std::span<const uint64_t> told,
                        std::span<const std::byte> text);
    hanare_status read_logs(uint32_t from, std::span<const uint64_t> known) noexcept;
    hanare_status read_log(uint32_t from, uint32_t task, uint64_t position) noexcept;
    void note_runs_between(uint32_t task, uint64_t begin, uint64_t end,
                           RunList& runs) const noexcept;
    hanare_status heed(std::span<const uint64_t> known) noexcept;
    Result<void> pass_rounds(uint32_t id, bool& is_wrong);
    Result<void> pass_round(uint32_t round, uint32_t id, bool& is_wrong);
    void add_others(uint32_t first, std::vector<uint32_t>& tasks) const;
    bool find_lost(uint32_t first);
    std::span<const std::byte> make_message(uint32_t id, bool is_wrong) noexcept;
    hanare_status send_message(uint32_t to, uint32_t round, std::span<const std::byte> message);
    Result<void> await_message(uint32_t from, uint32_t round);
    hanare_status send_updates(uint32_t first_told) noexcept;
    hanare_status finish_update(uint32_t task) noexcept;
    std::span<const HomeMemory::Update> updates_that_count() noexcept;
    void find_changed_since(const std::byte* positions) noexcept;
    std::unexpected<Error> failed(const char* what, hanare_status status) const;

    job::Communicator& communicator_;
    job::Lookout lookout_;
    Segment& segment_;
    Counters& counters_;
    Peers peers_;
    Notices notices_;
    Mail mail_;
    PeerKeys own_keys_;
    std::unique_ptr<HomeMemory> memory_;
    Locks locks_;
    HomeWaits waits_{peers_, locks_};

    // One thread learns, or appends, at a time.  Nothing of that allocates, so that it is not left
    // half done.
    std::mutex learning_;
    RunList changed_;  // under it
    RunList learnt_;   // under it
    // Of who is in the barrier.
    std::vector<uint64_t> last_barrier_;  // positions
    std::vector<Said> said_;
    std::vector<uint64_t> known_;
    std::vector<std::byte> message_;
    uint32_t barriers_ = 0;
    sys::SparseMemory updates_room_;                         // update_bytes_max() for each task
    std::vector<std::optional<fabric::Operation>> updates_;  // that are under way, by task
    std::vector<HomeMemory::Update> come_;
};

}  // namespace hanare::dsm
