// SPDX-License-Identifier: Apache-2.0
#include "compose/healer.hpp"

#include <algorithm>
#include <utility>

#include "base/units.hpp"
#include "sys/clock.hpp"
#include "sys/futex.hpp"
#include "sys/lock.hpp"
#include "sys/signal.hpp"
#include "telemetry/log.hpp"

namespace hanare::compose {

namespace {

using telemetry::LogLevel;

// How often members are asked whether they leave.
constexpr int kAskMs = 1000;
// After groups were not left in time.
constexpr int kAgainMs = 20;
constexpr int kCloseMs = 50;
constexpr size_t kCopyBytes = 256 * kKiB;

}  // namespace

Result<void> Healer::start() {
    HANARE_TRY(prepare_turns());
    const sys::SignalBlock inherited_by_the_thread;
    const auto body = [](void* self) -> void* {
        static_cast<Healer*>(self)->loop();
        return nullptr;
    };
    if (const int error = pthread_create(&thread_, nullptr, body, this); error != 0) {
        return fail_errno(HANARE_STATUS_SYSTEM, error, "cannot start a thread");
    }
    pthread_setname_np(thread_, "hanare-healer");
    is_running_ = true;
    return {};
}

Result<void> Healer::prepare_turns() {
    HANARE_TRY_ASSIGN(buffer_, sys::Mapping::reserve(kCopyBytes, kOsPageBytes));
    return {};
}

void Healer::stop() noexcept {
    if (!is_running_) return;
    is_stopping_.store(true);
    members_.note_change();
    pthread_join(thread_, nullptr);
    is_running_ = false;
}

void Healer::note_groups(uint64_t end) noexcept {
    uint64_t known = groups_end_.load();
    while (known < end && !groups_end_.compare_exchange_weak(known, end)) {
    }
}

bool Healer::is_idle() const noexcept {
    return healed_changes_.load() == members_.changes().load();
}

bool Healer::add_listener(Listener& listener) noexcept {
    for (auto& place : listeners_) {
        Listener* none = nullptr;
        if (place.compare_exchange_strong(none, &listener)) return true;
    }
    return false;
}

void Healer::remove_listener(Listener& listener) noexcept {
    for (auto& place : listeners_) {
        Listener* same = &listener;
        place.compare_exchange_strong(same, nullptr);
    }
    while (telling_.load() != 0) sys::yield_for_us(0);
}

void Healer::tell_listeners(void (Listener::*what)() noexcept) noexcept {
    telling_.store(1);
    for (const auto& place : listeners_) {
        if (Listener* const listener = place.load()) (listener->*what)();
    }
    telling_.store(0);
}

bool Healer::close(const Group& group, int timeout_ms) noexcept {
    return group.close(timeout_ms, [this] { tell_listeners(&Listener::group_wanted); });
}

void Healer::loop() noexcept {
    while (!is_stopping_.load()) {
        const uint32_t seen = members_.changes().load();
        add_wanted();
        look_for_leavers();
        int sleep_ms = kAskMs;
        if (may_be_needed()) {
            say_what_is_lost();
            if (!heal_all()) sleep_ms = kAgainMs;
        }
        finish_members();
        if (sleep_ms == kAskMs) healed_changes_.store(seen);
        if (is_stopping_.load()) break;
        sys::futex_wait(members_.changes(), seen, sleep_ms);
    }
}

bool Healer::ask_to_add(std::string_view spec) noexcept {
    if (!addition_.ask(spec)) return false;
    members_.note_change();
    return true;
}

void Healer::add_wanted() noexcept {
    const std::string spec(addition_.wanted());
    if (spec.empty()) return;
    auto store = open_member_(spec);
    const auto added = store ? members_.add(std::move(*store)) : std::unexpected(store.error());
    if (added) {
        telemetry::log(LogLevel::kInfo, "store %.200s has been added", spec.c_str());
    }
    addition_.finish(added ? "" : added.error().text);
}

// And for those that have ended without being used.
void Healer::look_for_leavers() noexcept {
    for (uint32_t number = 0; number < members_.count() && !is_stopping_.load(); ++number) {
        Member& member = members_[number];
        if (member.state() != Member::State::kGood) continue;
        if (member.store().wants_to_leave()) note_leaver(member);
        note_trouble(member);
    }
}

void Healer::note_leaver(Member& member) noexcept {
    if (!member.change(Member::State::kGood, Member::State::kLeaving)) return;
    telemetry::log(LogLevel::kInfo, "%s wants to leave: what it keeps moves elsewhere",
                   member.name().c_str());
    members_.note_change();
}

void Healer::note_trouble(Member& member) noexcept {
    if (layout_.spares() == 0 || member.store().trouble() == nullptr) return;
    members_.lose(member, layout_.spares());
}

bool Healer::may_be_needed() noexcept {
    for (uint32_t number = 0; number < members_.count(); ++number) {
        const Member::State state = members_[number].state();
        if (state == Member::State::kLeaving) return true;
        if (state == Member::State::kLost && members_[number].chunks.load() != 0) return true;
    }
    return false;
}

void Healer::say_what_is_lost() noexcept {
    is_said_lost_.resize(Members::kMembersMax);
    for (uint32_t number = 0; number < members_.count(); ++number) {
        Member& member = members_[number];
        if (!member.is_lost() || is_said_lost_[number]) continue;
        is_said_lost_[number] = true;
        const char* const why = member.store().trouble();
        telemetry::log(LogLevel::kWarn, "%s: it is lost; its %s are made again from the others",
                       why != nullptr ? why : member.name().c_str(),
                       format_size(member.chunks.load() * Layout::kChunkBytes).c_str());
    }
}

uint64_t Healer::lost_chunks() const noexcept {
    uint64_t chunks = 0;
    for (uint32_t number = 0; number < members_.count(); ++number) {
        if (members_[number].is_lost()) chunks += members_[number].chunks.load();
    }
    return chunks;
}

// False: it should be tried again soon.
bool Healer::heal_all() noexcept {
    uint64_t full = 0;
    uint64_t moved = 0;
    uint64_t left = 0;
    const bool was_lost = lost_chunks() != 0;
    bool is_busy = false;
    const uint64_t end = groups_end_.load();
    for (uint64_t number = 0; number < end && !is_stopping_.load(); ++number) {
        switch (heal(groups_.group(number), full)) {
            case Outcome::kNothing: break;
            case Outcome::kMoved: ++moved; break;
            case Outcome::kBusy: is_busy = true; break;
            case Outcome::kNoRoom:
            case Outcome::kFailed: ++left; break;
        }
    }
    if (is_busy || is_stopping_.load()) return false;
    tell_moved(moved, left, was_lost);
    return true;
}

void Healer::tell_moved(uint64_t moved, uint64_t left, bool was_lost) const noexcept {
    if (moved != 0 && left == 0) {
        telemetry::log(was_lost ? LogLevel::kWarn : LogLevel::kInfo,
                       "%s have moved to other members: nothing is missing",
                       format_size(moved * Layout::kChunkBytes).c_str());
    } else if (left != 0) {
        HANARE_LOG_ONCE(LogLevel::kWarn,
                        "%s cannot move: there is no room for it elsewhere, or more is lost (%s)",
                        format_size(left * Layout::kChunkBytes).c_str(), members_.names().c_str());
    }
}

bool Healer::should_move(const Group& group, uint32_t role) const noexcept {
    const auto place = group.place(role);
    if (!place) return false;
    const Member::State state = members_[place->member].state();
    return state == Member::State::kLeaving || state == Member::State::kLost;
}

bool Healer::has_to_move(const Group& group) const noexcept {
    for (uint32_t role = 0; role < layout_.total; ++role) {
        if (should_move(group, role)) return true;
    }
    return false;
}

// A group has one chunk to be moved, in nearly all cases.
Healer::Outcome Healer::heal(const Group& group, uint64_t& full) noexcept {
    if (!has_to_move(group)) return Outcome::kNothing;
    if (!members_.may_have_chunk(members_of(group), full)) return Outcome::kNoRoom;
    if (!close(group, kCloseMs)) {
        tell_listeners(&Listener::group_opened);
        return Outcome::kBusy;
    }
    Outcome outcome = Outcome::kNothing;
    for (uint32_t role = 0; role < layout_.total; ++role) {
        if (!should_move(group, role)) continue;
        const Outcome one = move_chunk(group, role, full);
        if (outcome == Outcome::kNothing || one != Outcome::kMoved) outcome = one;
    }
    group.open();
    tell_listeners(&Listener::group_opened);
    return outcome;
}

uint64_t Healer::members_of(const Group& group) const noexcept {
    uint64_t used = 0;
    for (uint32_t role = 0; role < layout_.total; ++role) {
        if (const auto place = group.place(role)) used |= uint64_t{1} << place->member;
    }
    return used;
}

Healer::Outcome Healer::move_chunk(const Group& group, uint32_t role, uint64_t& full) noexcept {
    const uint64_t used = members_of(group);
    std::optional<Place> to = take_unused(used);
    const bool is_zero = !to;
    if (!to) to = members_.take_chunk(used, full);
    if (!to) return Outcome::kNoRoom;
    const bool has_to_copy = group.is_written() || !is_zero;
    if (has_to_copy && !copy(group, role, 0, Layout::kChunkBytes, *to)) {
        // With parity only what is zeros, or belongs to a group, may be had by another one: it is
        // for the next that is copied.
        if (layout_.kind == Kind::kParity) {
            unused_[to->member] = to;
        } else {
            members_.give_back(*to);
        }
        return Outcome::kFailed;
    }
    const Place from = *group.place(role);
    group.set_place(role, *to);
    members_.give_back(from);
    moved_.fetch_add(1);
    return Outcome::kMoved;
}

std::optional<Place> Healer::take_unused(uint64_t used) noexcept {
    for (uint32_t number = 0; number < members_.count(); ++number) {
        const bool is_usable = (used >> number & 1) == 0 && members_[number].takes_chunks();
        if (is_usable && unused_[number]) return std::exchange(unused_[number], std::nullopt);
    }
    return std::nullopt;
}

// Bytes of the chunk.
bool Healer::copy(const Group& group, uint32_t role, uint64_t begin, uint64_t end,
                  Place to) noexcept {
    Member& target = members_[to.member];
    while (begin < end) {
        const auto bytes = std::min<size_t>(end - begin, kCopyBytes);
        if (io_.read_chunk(group, role, begin, buffer_.address(), bytes) != HANARE_STATUS_OK) {
            return false;
        }
        const hanare_status written =
            target.store().write(to.offset + begin, buffer_.address(), bytes);
        if (io_.note(target, written) != HANARE_STATUS_OK) return false;
        begin += bytes;
    }
    return true;
}

// What has nothing any more may end.
void Healer::finish_members() noexcept {
    for (uint32_t number = 0; number < members_.count(); ++number) {
        Member& member = members_[number];
        if (!member.takes_chunks() && unused_[number]) {
            members_.give_back(*std::exchange(unused_[number], std::nullopt));
        }
        if (members_.finish_lost(member, layout_.total)) member.give_up();
        if (member.chunks.load() == 0 &&
            member.change(Member::State::kLeaving, Member::State::kGone)) {
            let_go(member);
        }
    }
}

void Healer::let_go(Member& member) noexcept {
    member.give_up();
    telemetry::log(LogLevel::kInfo, "%s has left", member.name().c_str());
}

}  // namespace hanare::compose
