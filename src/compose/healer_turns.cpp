// SPDX-License-Identifier: Apache-2.0
//
// Healer, in turns: for a store whose slots forked children share.  Places are known to all of its
// processes, gates to one each; so nothing moves while there is more than one, and forks wait for
// the end of a turn.
//
// Only slots that are held move: what is in others may be another process's, and sealed by it.
#include <algorithm>
#include <utility>

#include "base/units.hpp"
#include "compose/healer.hpp"
#include "sys/clock.hpp"

namespace hanare::compose {

namespace {

using store::SlotUsers;

constexpr uint64_t kNsPerMs = 1'000'000;
// What could not move is tried again.
constexpr uint64_t kAgainNs = 1000 * kNsPerMs;
// Longer than what faults wait for, and most of what they have started.  What the calling thread
// itself has under way ends between turns only.
constexpr int kCloseMs = 10;
constexpr uint32_t kBusyGroupsMax = 4;  // in a turn
// For what is to be added, until children have ended.
constexpr uint64_t kAddNs = 3000 * kNsPerMs;

}  // namespace

bool Healer::take_turn(const Turn& turn) noexcept {
    add_in_turn(turn.users);
    look_at_members();
    const Pass wanted{members_to_leave(), members_.count(), turn.groups_end};
    // Who has given chunks of one that was good then has noted their group: seen in the next turn.
    if (std::exchange(seen_leaving_, wanted.leaving) != wanted.leaving) return false;
    if (wanted.leaving == 0 || wanted == done_ || sys::now_ns() < again_ns_) return false;
    if (!turn.users.is_alone()) return false;
    if (wanted != pass_ || next_ == 0) {
        pass_ = wanted;
        next_ = 0;
        full_ = 0;
        left_ = empty_left_ = 0;
        was_busy_ = false;
    }
    // Twice through all: what nothing is kept in comes last, if there is room for that.
    uint32_t busy_groups = 0;
    while (next_ < 2 * pass_.groups_end && busy_groups < kBusyGroupsMax) {
        const Group group = groups_.group(next_ % pass_.groups_end);
        const bool takes_all = next_++ >= pass_.groups_end;
        if (!has_to_move(group)) continue;
        const bool is_empty = !has_content(turn, group);
        if (is_empty && !takes_all) continue;
        switch (heal_slots(turn, group)) {
            case Outcome::kNothing: break;
            case Outcome::kMoved: ++moved_in_pass_; return true;
            case Outcome::kBusy: ++busy_groups; break;
            case Outcome::kNoRoom:
            case Outcome::kFailed:
                if (takes_all) ++(is_empty ? empty_left_ : left_);
                break;
        }
    }
    was_busy_ |= busy_groups != 0;
    if (next_ < 2 * pass_.groups_end) return false;
    next_ = 0;
    if (!was_busy_) finish_pass(turn);
    return false;
}

// Other processes would not know it, nor it them.
void Healer::add_in_turn(SlotUsers& users) noexcept {
    if (addition_.wanted().empty()) return;
    const uint64_t now_ns = sys::now_ns();
    if (add_until_ns_ == 0) add_until_ns_ = now_ns + kAddNs;
    if (users.is_alone()) {
        add_wanted();
    } else if (now_ns > add_until_ns_) {
        addition_.finish(
            "children share its memory, and would not know the store: ask again when "
            "they have ended");
    } else {
        return;
    }
    add_until_ns_ = 0;
}

void Healer::look_at_members() noexcept {
    for (uint32_t number = 0; number < members_.count(); ++number) {
        Member& member = members_[number];
        if (member.state() != Member::State::kGood) continue;
        if (member.store().has_asked_to_leave()) note_leaver(member);
        note_trouble(member);
    }
}

void Healer::finish_pass(const Turn& turn) noexcept {
    // With too few, who has been told what is lost knows the rest.
    const uint64_t left = left_ + empty_left_;
    if (left == 0 || members_.good() >= layout_.total) {
        tell_moved(moved_in_pass_, left, members_.lost() != 0);
    }
    if (left != 0) {
        again_ns_ = sys::now_ns() + kAgainNs;
        return;
    }
    moved_in_pass_ = 0;
    bool is_done = true;
    for (uint32_t number = 0; number < pass_.members; ++number) {
        if ((pass_.leaving >> number & 1) != 0) is_done &= finish_in_turn(turn, number);
    }
    if (is_done) {
        done_ = pass_;
    } else {
        again_ns_ = sys::now_ns() + kAgainNs;
    }
}

// False: not yet, since somebody may be giving chunks of it to a group.
bool Healer::finish_in_turn(const Turn& turn, uint32_t number) noexcept {
    using State = Member::State;
    Member& member = members_[number];
    if (member.chunks.load() != 0) return false;
    if (has_chunk_behind(turn, number)) return true;
    const bool was_lost = member.is_lost();
    if (was_lost && members_.good() < layout_.total) return true;
    const bool is_gone = was_lost ? members_.finish_lost(member, layout_.total)
                                  : member.change(State::kLeaving, State::kGone);
    if (!is_gone) return false;
    // Somebody has given chunks of it in between.  Where others have copies, it may lack what was
    // written to them meanwhile.
    if (member.chunks.load() != 0 || has_chunk_behind(turn, number)) {
        member.change(State::kGone, layout_.spares() != 0 ? State::kLost : State::kLeaving);
        return false;
    }
    if (was_lost) {
        member.give_up();
    } else {
        let_go(member);
    }
    return true;
}

// In a group that this process cannot reach: the last that was to be given had no room.
bool Healer::has_chunk_behind(const Turn& turn, uint32_t member) const noexcept {
    const uint64_t end = turn.room.groups_end();
    for (uint64_t number = turn.groups_end; number < end; ++number) {
        if ((members_of(groups_.group(number)) >> member & 1) != 0) return true;
    }
    return false;
}

uint64_t Healer::members_to_leave() const noexcept {
    uint64_t leaving = 0;
    for (uint32_t number = 0; number < members_.count(); ++number) {
        const Member::State state = members_[number].state();
        if (state == Member::State::kLeaving || state == Member::State::kLost) {
            leaving |= uint64_t{1} << number;
        }
    }
    return leaving;
}

bool Healer::has_content(const Turn& turn, const Group& group) const noexcept {
    const uint64_t bytes = layout_.group_bytes();
    return turn.users.content_of(group.number() * bytes, bytes) != SlotUsers::Content::kNone;
}

Healer::Outcome Healer::heal_slots(const Turn& turn, const Group& group) noexcept {
    Outcome outcome = Outcome::kNothing;
    for (uint32_t role = 0; role < layout_.total; ++role) {
        if (!should_move(group, role)) continue;
        const Outcome one = move_slots(turn, group, role);
        if (one == Outcome::kBusy) return one;
        if (outcome == Outcome::kNothing || one != Outcome::kMoved) outcome = one;
    }
    return outcome;
}

// The keeper's own channel begins nothing meanwhile.
Healer::Outcome Healer::move_slots(const Turn& turn, const Group& group, uint32_t role) noexcept {
    const auto to = find_place(turn, group, role);
    if (!to) return Outcome::kNoRoom;
    if (!close(group, kCloseMs)) return Outcome::kBusy;
    const Outcome outcome = copy_slots(turn, group, role, *to);
    if (outcome == Outcome::kMoved) {
        group.set_place(role, *to);
        unused_[to->member].reset();
        moved_.fetch_add(1);
    }
    group.open();
    return outcome;
}

// It stays unused until something is there.
std::optional<Place> Healer::find_place(const Turn& turn, const Group& group,
                                        uint32_t role) noexcept {
    const uint64_t used = members_of(group) | full_;
    const uint64_t first = layout_.kind == Kind::kList ? 0 : group.number() + role;
    for (uint32_t i = 0; i < members_.count(); ++i) {
        const auto number = static_cast<uint32_t>((first + i) % members_.count());
        const Member& member = members_[number];
        const bool is_usable = member.takes_chunks() && member.store().trouble() == nullptr;
        if ((used >> number & 1) != 0 || !is_usable) continue;
        std::optional<Place>& place = unused_[number];
        if (!place) place = turn.room.take_chunk(members_, number);
        if (place) return place;
        full_ |= uint64_t{1} << number;
    }
    return std::nullopt;
}

Healer::Outcome Healer::copy_slots(const Turn& turn, const Group& group, uint32_t role,
                                   Place to) noexcept {
    const uint64_t group_bytes = layout_.group_bytes();
    const uint64_t least = layout_.kind == Kind::kParity ? layout_.stripe_bytes() : kOsPageBytes;
    const uint64_t step = std::min(std::max(turn.users.unit_bytes(), least), group_bytes);
    const uint64_t step_of_chunk = step / layout_.data;
    for (uint64_t at = 0; at < group_bytes; at += step) {
        switch (turn.users.content_of(group.number() * group_bytes + at, step)) {
            case SlotUsers::Content::kNone: continue;
            case SlotUsers::Content::kChanging: return Outcome::kBusy;
            case SlotUsers::Content::kKept: break;
        }
        const uint64_t begin = layout_.spot_of(at).offset;
        if (!copy(group, role, begin, begin + step_of_chunk, to)) return Outcome::kFailed;
    }
    return Outcome::kMoved;
}

}  // namespace hanare::compose
