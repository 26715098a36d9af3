// SPDX-License-Identifier: Apache-2.0
#include "compose/members.hpp"

#include "compose/layout.hpp"
#include "sys/futex.hpp"
#include "sys/signal.hpp"
#include "telemetry/raw_line.hpp"

namespace hanare::compose {

Result<void> Members::add(std::unique_ptr<store::Store> store) {
    auto member = std::make_unique<Member>(std::move(store));
    {
        const sys::SignalBlock no_signals;
        const sys::LockGuard guard(add_lock_);
        const uint32_t number = count_.load();
        if (number < kMembersMax) {
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

std::optional<Place> Members::take_chunk(uint64_t used, uint64_t& full) {
    for (uint32_t number = 0; number < count(); ++number) {
        const uint64_t bit = uint64_t{1} << number;
        Member& member = (*this)[number];
        const bool is_usable = member.takes_chunks() && member.store().trouble() == nullptr;
        if (((used | full) & bit) != 0 || !is_usable) continue;
        if (const auto offset = member.store().reserve(Layout::kChunkBytes)) {
            member.chunks.fetch_add(1);
            return Place{number, *offset};
        }
        full |= bit;
    }
    return std::nullopt;
}

void Members::give_back(Place place) noexcept {
    Member& member = (*this)[place.member];
    member.store().release(place.offset, Layout::kChunkBytes);
    member.chunks.fetch_sub(1);
}

void Members::lose(Member& member) noexcept {
    if (!member.set_lost()) return;
    note_change();
    if (!says_lost_) return;
    const char* const why = member.store().trouble();
    telemetry::RawLine line;
    line.text("hanare: warn: ").text(why != nullptr ? why : member.name().c_str());
    line.text("; nothing is missing, but one more may not be lost");
    line.write_stderr();
}

void Members::note_change() noexcept {
    changes_.fetch_add(1);
    sys::futex_wake_all(changes_);
}

const char* Members::trouble() const noexcept {
    for (uint32_t number = 0; number < count(); ++number) {
        const char* const why = (*this)[number].store().trouble();
        if (why != nullptr) return why;
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
