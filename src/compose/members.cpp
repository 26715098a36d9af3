// SPDX-License-Identifier: Apache-2.0
#include "compose/members.hpp"

#include <algorithm>

#include "compose/layout.hpp"
#include "sys/futex.hpp"
#include "sys/signal.hpp"
#include "telemetry/raw_line.hpp"

namespace hanare::compose {

Result<void> Members::add(std::unique_ptr<store::Store> store) {
    auto member = std::make_unique<Member>(std::move(store), kind_);
    {
        const sys::SignalBlock no_signals;
        const sys::LockGuard guard(add_lock_);
        const uint32_t number = count_.load();
        if (number < kMembersMax) {
            if (states_ != nullptr) member->share_state(states_[number]);
            members_[number] = std::move(member);
            count_.store(number + 1, std::memory_order_release);
        }
    }
    if (member != nullptr) {
        return fail(HANARE_STATUS_LIMIT, "a store has at most %u members", kMembersMax);
    }
    note_change();
    return {};
}

void Members::share_states(std::atomic<Member::State>* states) noexcept {
    states_ = states;
    for (uint32_t number = 0; number < count(); ++number) {
        (*this)[number].share_state(states[number]);
    }
}

bool Members::may_have_chunk(uint64_t used, uint64_t full) const noexcept {
    for (uint32_t number = 0; number < count(); ++number) {
        const Member& member = (*this)[number];
        const bool is_usable = member.takes_chunks() && member.store().trouble() == nullptr;
        if (((used | full) >> number & 1) == 0 && is_usable) return true;
    }
    return false;
}

std::optional<Place> Members::take_chunk(uint64_t used, uint64_t& full) {
    for (uint32_t number = 0; number < count(); ++number) {
        Member& member = (*this)[number];
        const bool is_usable = member.takes_chunks() && member.store().trouble() == nullptr;
        if (((used | full) >> number & 1) != 0 || !is_usable) continue;
        member.chunks.fetch_add(1);
        if (member.takes_chunks()) {
            if (const auto place = take_unit(member, number)) return place;
            full |= uint64_t{1} << number;
        }
        member.chunks.fetch_sub(1);
    }
    return std::nullopt;
}

// What a member gives only in larger pieces is cut up.
std::optional<Place> Members::take_unit(Member& member, uint32_t number) {
    if (const auto offset = member.take_spare()) return Place{number, *offset};
    const uint64_t bytes = std::max(member.store().unit_bytes(), Layout::kChunkBytes);
    const auto offset = member.store().reserve(bytes);
    if (!offset) return std::nullopt;
    for (uint64_t at = Layout::kChunkBytes; at < bytes; at += Layout::kChunkBytes) {
        member.add_spare(*offset + at);
    }
    return Place{number, *offset};
}

void Members::give_back(Place place) noexcept {
    Member& member = (*this)[place.member];
    member.chunks.fetch_sub(1);
    if (!member.is_used()) return;
    if (member.store().unit_bytes() > Layout::kChunkBytes) {
        member.add_spare(place.offset);
    } else {
        member.store().release(place.offset, Layout::kChunkBytes);
    }
}

std::optional<Place> Members::place_on_lost(uint64_t used) noexcept {
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(losses_lock_);
    for (uint32_t number = 0; number < count(); ++number) {
        Member& member = (*this)[number];
        if ((used >> number & 1) != 0 || !member.is_lost()) continue;
        member.chunks.fetch_add(1);
        return Place{number, 0};
    }
    return std::nullopt;
}

uint32_t Members::lost() const noexcept {
    uint32_t lost = 0;
    for (uint32_t number = 0; number < count(); ++number) {
        if ((*this)[number].is_lost()) ++lost;
    }
    return lost;
}

uint32_t Members::good() const noexcept {
    uint32_t good = 0;
    for (uint32_t number = 0; number < count(); ++number) {
        if ((*this)[number].takes_chunks()) ++good;
    }
    return good;
}

bool Members::lose(Member& member, uint32_t spares) noexcept {
    {
        const sys::SignalBlock no_signals;
        const sys::LockGuard guard(losses_lock_);
        if (!member.is_used()) return true;
        if (failed() >= spares && member.store().trouble() == nullptr) return false;
        if (!member.set_lost()) return true;
    }
    note_change();
    if (!says_lost_) return true;
    const char* const why = member.store().trouble();
    telemetry::RawLine line;
    line.text("hanare: warn: ").text(why != nullptr ? why : member.name().c_str());
    line.text(lost() <= spares ? ": it is lost; nothing is missing, but one more may not be lost"
                               : ": it is lost");
    line.write_stderr();
    return true;
}

bool Members::finish_lost(Member& member, uint32_t total) noexcept {
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(losses_lock_);
    if (member.chunks.load() != 0 || good() < total) return false;
    return member.change(Member::State::kLost, Member::State::kGone);
}

void Members::note_change() noexcept {
    changes_.fetch_add(1);
    sys::futex_wake_all(changes_);
}

// Also those of which nobody has found out.
uint32_t Members::failed() const noexcept {
    uint32_t failed = 0;
    for (uint32_t number = 0; number < count(); ++number) {
        const Member& member = (*this)[number];
        if (member.state() == Member::State::kGone) continue;
        if (member.is_lost() || member.store().trouble() != nullptr) ++failed;
    }
    return failed;
}

const char* Members::trouble(uint32_t spares) const noexcept {
    if (failed() <= spares) return nullptr;
    for (uint32_t number = 0; number < count(); ++number) {
        const Member& member = (*this)[number];
        if (member.state() == Member::State::kGone) continue;
        if (const char* const why = member.store().trouble()) return why;
    }
    return nullptr;
}

int Members::last_errno() const noexcept {
    for (uint32_t number = 0; number < count(); ++number) {
        const int error = (*this)[number].store().last_errno();
        if (error != 0) return error;
    }
    return 0;
}

std::string Members::names() const {
    std::string text;
    for (uint32_t number = 0; number < count(); ++number) {
        if (!text.empty()) text += "; ";
        text += (*this)[number].name();
    }
    return text;
}

}  // namespace hanare::compose
