// SPDX-License-Identifier: Apache-2.0
//
// Healer: the thread that moves chunks where they should be: away from members that leave, and,
// made again from the others, away from members that are lost.  One chunk at a time, whose group is
// closed meanwhile; the program goes on.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "compose/addition.hpp"
#include "compose/group_io.hpp"
#include "compose/group_table.hpp"
#include "compose/layout.hpp"
#include "compose/members.hpp"
#include "sys/memory.hpp"

namespace hanare::compose {

class Healer {
public:
    Healer(const Layout& layout, const GroupTable& groups, Members& members, GroupIo& io)
        : layout_(layout), groups_(groups), members_(members), io_(io) {}
    ~Healer() { stop(); }

    // From a SPEC; in the healer's thread.
    using OpenMember =
        std::function<Result<std::unique_ptr<store::Store>>(const std::string& spec)>;
    Result<void> start(OpenMember open_member);
    void
    stop() noexcept;  // after a chunk, or the answer of a server, which may take its time limit

    // Groups below this number may have chunks.  Any thread.
    void note_groups(uint64_t end) noexcept;

    // Called when a group that it had closed is open again, until the next call; nullptr: nobody.
    // In its thread: it neither waits nor allocates.
    struct Listener {
        virtual void group_opened() noexcept = 0;

    protected:
        ~Listener() = default;
    };
    // False: there are too many.
    bool add_listener(Listener& listener) noexcept;
    void remove_listener(Listener& listener) noexcept;

    // As in store::Store; false if it does not run or cannot open any.  Any thread.
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
    void look_for_leavers() noexcept;
    bool may_be_needed() noexcept;
    uint64_t lost_chunks() const noexcept;
    bool heal_all() noexcept;
    Outcome heal(Group& group, uint64_t& full) noexcept;
    uint64_t members_of(const Group& group) const noexcept;
    Outcome move_chunk(Group& group, uint32_t role, uint64_t& full) noexcept;
    bool copy(Group& group, uint32_t role, Place to) noexcept;
    void say_what_is_lost() noexcept;
    void finish_leavers() noexcept;
    void tell_listeners() noexcept;

    const Layout& layout_;
    const GroupTable& groups_;
    Members& members_;
    GroupIo& io_;
    sys::Mapping buffer_;
    pthread_t thread_{};
    bool is_running_ = false;
    std::atomic<bool> is_stopping_{false};
    OpenMember open_member_;
    Addition addition_;
    std::atomic<uint64_t> groups_end_{0};
    std::atomic<uint64_t> moved_{0};
    std::atomic<uint32_t> healed_changes_{0};  // of Members, as far as it has dealt with them
    std::vector<bool> is_said_lost_;           // by member
    std::array<std::atomic<Listener*>, kListenersMax> listeners_{};
    std::atomic<uint32_t> telling_{0};
};

}  // namespace hanare::compose
