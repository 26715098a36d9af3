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
#include "telemetry/log.hpp"

namespace hanare::compose {

namespace {

using store::SlotUsers;
using telemetry::LogLevel;

constexpr uint64_t kNsPerMs = 1'000'000;
// How often members are asked whether they leave, and what could not move is tried again.
constexpr uint64_t kAskNs = 1000 * kNsPerMs;
// Longer than what faults wait for.  What the calling thread itself has under way ends between
// turns only.
constexpr int kCloseMs = 2;
constexpr uint32_t kBusyGroupsMax = 4;  // in a turn

}  // namespace

bool Healer::take_turn(const Turn& turn) noexcept {
    const uint64_t now_ns = sys::now_ns();
    if (now_ns - asked_ns_ >= kAskNs) {
        look_for_leavers();
        asked_ns_ = sys::now_ns();
    }
    const Pass wanted{members_to_leave(), members_.count(), turn.groups_end};
    if (wanted.leaving == 0 || wanted == done_) return false;
    if (left_ + empty_left_ != 0 && now_ns < again_ns_) return false;
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
    if (was_busy_) return false;
    finish_pass();
    return false;
}

void Healer::finish_pass() noexcept {
    uint32_t good = 0;
    for (uint32_t number = 0; number < pass_.members; ++number) {
        good += members_[number].takes_chunks() ? 1 : 0;
    }
    // With too few, who has been told what is lost knows the rest.
    const bool is_news = left_ == 0 || good >= layout_.total;
    if (is_news) tell_moved(moved_in_pass_, left_, members_.lost() != 0);
    if (left_ == 0) moved_in_pass_ = 0;
    again_ns_ = sys::now_ns() + kAskNs;
    if (left_ + empty_left_ != 0) return;
    done_ = pass_;
    for (uint32_t number = 0; number < pass_.members; ++number) {
        if ((pass_.leaving >> number & 1) == 0) continue;
        let_go(members_[number]);
        members_[number].change(Member::State::kLost, Member::State::kGone);
    }
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
        if (!group.close(kCloseMs)) return Outcome::kBusy;
        const Outcome one = move_slots(turn, group, role);
        group.open();
        tell_listeners();
        if (outcome == Outcome::kNothing || one != Outcome::kMoved) outcome = one;
    }
    return outcome;
}

Healer::Outcome Healer::move_slots(const Turn& turn, const Group& group, uint32_t role) noexcept {
    const uint64_t used = members_of(group);
    std::optional<Place> to = std::exchange(unused_, std::nullopt);
    if (!to || (used >> to->member & 1) != 0 || !members_[to->member].takes_chunks()) {
        const auto first = static_cast<uint32_t>(group.number() + role);
        to = turn.room.take_chunk(members_, first, used, full_);
    }
    if (!to) return Outcome::kNoRoom;
    const Outcome outcome = copy_slots(turn, group, role, *to);
    if (outcome != Outcome::kMoved) {
        unused_ = to;
        return outcome;
    }
    group.set_place(role, *to);
    moved_.fetch_add(1);
    return outcome;
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
