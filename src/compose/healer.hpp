// SPDX-License-Identifier: Apache-2.0
//
// Healer: moves chunks where they should be: away from members that leave, and, made again from the
// others, away from members that are lost.  One chunk at a time, whose group is closed meanwhile;
// the program goes on.  A thread does that, or, where forked children share the store, whoever
// tends it in turns, as long as one process has the store for itself.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "compose/addition.hpp"
#include "compose/group_io.hpp"
#include "compose/group_table.hpp"
#include "compose/layout.hpp"
#include "compose/members.hpp"
#include "compose/shared_room.hpp"
#include "sys/memory.hpp"

namespace hanare::compose {

class Healer {
public:
    // From a SPEC; by who moves chunks.
    using OpenMember =
        std::function<Result<std::unique_ptr<store::Store>>(const std::string& spec)>;
    Healer(const Layout& layout, const GroupTable& groups, Members& members, GroupIo& io,
           OpenMember open_member)
        : layout_(layout),
          groups_(groups),
          members_(members),
          io_(io),
          open_member_(std::move(open_member)) {}
    ~Healer() { stop(); }

    Result<void> start();
    void
    stop() noexcept;  // after a chunk, or the answer of a server, which may take its time limit

    // Instead of the thread, once what turns need is there; a turn moves a chunk at most.  Whether
    // there is more to do at once.  By one thread.
    Result<void> prepare_turns();
    struct Turn {
        SharedRoom& room;
        store::SlotUsers& users;
        uint64_t groups_end;  // whose chunks this process can reach
    };
    bool take_turn(const Turn& turn) noexcept;
    // Whether some members are lost or leave.
    bool has_work() const noexcept { return members_to_leave() != 0; }

    // Groups below this number may have chunks.  Any thread.
    void note_groups(uint64_t end) noexcept;

    // Called by who moves chunks.
    struct Listener {
        // A group that was closed is open again.  Neither waits nor allocates.
        virtual void group_opened() noexcept {}
        // One is to be closed: whose transfers there are over leaves it.  It may wait for servers.
        virtual void group_wanted() noexcept {}

    protected:
        ~Listener() = default;
    };
    // False: there are too many.
    bool add_listener(Listener& listener) noexcept;
    void remove_listener(Listener& listener) noexcept;

    // As in store::Store.  Any thread.
    bool ask_to_add(std::string_view spec) noexcept;
    const char* added() const noexcept { return addition_.outcome(); }

    // Chunks moved so far.  Any thread.
    uint64_t moved() const noexcept { return moved_.load(); }
    // Nothing that has happened up to now is left to be done.  Any thread.
    bool is_idle() const noexcept;

private:
    static constexpr size_t kListenersMax = 8;
    enum class Outcome { kNothing, kMoved, kNoRoom, kBusy, kFailed };

    void loop() noexcept;
    void add_wanted() noexcept;
    void add_in_turn(store::SlotUsers& users) noexcept;
    void look_for_leavers() noexcept;
    bool may_be_needed() noexcept;
    uint64_t lost_chunks() const noexcept;
    bool heal_all() noexcept;
    Outcome heal(const Group& group, uint64_t& full) noexcept;
    uint64_t members_of(const Group& group) const noexcept;
    bool should_move(const Group& group, uint32_t role) const noexcept;
    bool has_to_move(const Group& group) const noexcept;
    void note_leaver(Member& member) noexcept;
    void note_trouble(Member& member) noexcept;
    Outcome move_chunk(const Group& group, uint32_t role, uint64_t& full) noexcept;
    std::optional<Place> take_unused(uint64_t used) noexcept;
    bool copy(const Group& group, uint32_t role, uint64_t begin, uint64_t end, Place to) noexcept;
    void tell_moved(uint64_t moved, uint64_t left, bool was_lost) const noexcept;

    uint64_t members_to_leave() const noexcept;
    bool has_content(const Turn& turn, const Group& group) const noexcept;
    Outcome heal_slots(const Turn& turn, const Group& group) noexcept;
    Outcome move_slots(const Turn& turn, const Group& group, uint32_t role) noexcept;
    std::optional<Place> find_place(const Turn& turn, const Group& group, uint32_t role) noexcept;
    Outcome copy_slots(const Turn& turn, const Group& group, uint32_t role, Place to) noexcept;
    void look_at_members() noexcept;
    void finish_pass(const Turn& turn) noexcept;
    bool has_chunk_behind(const Turn& turn, uint32_t member) const noexcept;
    void say_what_is_lost() noexcept;
    void finish_members() noexcept;
    bool finish_in_turn(const Turn& turn, uint32_t number) noexcept;
    void let_go(Member& member) noexcept;
    void tell_listeners(void (Listener::*what)() noexcept) noexcept;
    bool close(const Group& group, int timeout_ms) noexcept;

    const Layout& layout_;
    const GroupTable& groups_;
    Members& members_;
    GroupIo& io_;
    sys::Mapping buffer_;
    pthread_t thread_{};
    bool is_running_ = false;
    std::atomic<bool> is_stopping_{false};
    const OpenMember open_member_;
    Addition addition_;
    std::atomic<uint64_t> groups_end_{0};
    std::atomic<uint64_t> moved_{0};
    std::atomic<uint32_t> healed_changes_{0};  // of Members, as far as it has dealt with them
    std::vector<bool> is_said_lost_;           // by member
    // By member: had for a chunk that could not be copied.
    std::array<std::optional<Place>, Members::kMembersMax> unused_;

    // Of turns: one pass after the other through all groups, as long as some have to move.
    struct Pass {
        uint64_t leaving = 0;  // members, bits
        uint32_t members = 0;
        uint64_t groups_end = 0;
        bool operator==(const Pass&) const = default;
    };
    Pass pass_;          // what it is for
    Pass done_;          // the last that has left nothing
    uint64_t next_ = 0;  // group
    uint64_t full_ = 0;  // members, bits
    uint64_t moved_in_pass_ = 0;
    uint64_t left_ = 0;        // groups that could not move
    uint64_t empty_left_ = 0;  // of those in which nothing is kept
    bool was_busy_ = false;
    uint64_t seen_leaving_ = 0;  // members, bits, in the last turn
    uint64_t again_ns_ = 0;      // when to try again what could not move
    uint64_t add_until_ns_ = 0;  // 0: nothing waits to be added
    std::array<std::atomic<Listener*>, kListenersMax> listeners_{};
    std::atomic<uint32_t> telling_{0};
};

}  // namespace hanare::compose
