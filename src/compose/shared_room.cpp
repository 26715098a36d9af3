// SPDX-License-Identifier: Apache-2.0
#include "compose/shared_room.hpp"

#include "base/units.hpp"

namespace hanare::compose {

namespace {

// While a chunk of the member is on its way to a group, so that it is not let go.
class Claim {
public:
    explicit Claim(Member& member) noexcept : member_(member) { member_.chunks.fetch_add(1); }
    ~Claim() { member_.chunks.fetch_sub(1); }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

private:
    Member& member_;
};

}  // namespace

Result<SharedRoom> SharedRoom::make(Members& members) {
    HANARE_TRY_ASSIGN(auto memory,
                      sys::Mapping::reserve_shared(round_up(sizeof(Shared), kOsPageBytes)));
    SharedRoom room(std::move(memory));
    members.share_states(room.shared().states.data());
    return room;
}

// Roles are given in their order, so all processes see the same members used by those before.
hanare_status SharedRoom::cover(const Layout& layout, Members& members,
                                const Group& group) noexcept {
    uint64_t used = 0;
    for (uint32_t role = 0; role < layout.total; ++role) {
        if (!group.place(role)) {
            const hanare_status status = give(layout, members, group, role, used);
            if (status != HANARE_STATUS_OK) return status;
        }
        const Place place = *group.place(role);
        Member& member = members[place.member];
        used |= uint64_t{1} << place.member;
        if (!member.is_used()) continue;
        const hanare_status status = member.store().cover(place.offset + Layout::kChunkBytes);
        if (status == HANARE_STATUS_OK) continue;
        if (layout.spares() == 0 || !members.lose(member, layout.spares())) return status;
    }
    return HANARE_STATUS_OK;
}

// A list is filled in order; else members take turns.
hanare_status SharedRoom::give(const Layout& layout, Members& members, const Group& group,
                               uint32_t role, uint64_t used) noexcept {
    const uint32_t count = members.count();
    const uint64_t first = layout.kind == Kind::kList ? 0 : group.number() + role;
    hanare_status last = HANARE_STATUS_STORE_FULL;
    // Twice round: who leaves has to do where nobody else can.
    for (uint32_t turn = 0; turn < 2 * count; ++turn) {
        const auto each = static_cast<uint32_t>((first + turn) % count);
        const Claim claim(members[each]);
        const Member::State state = members[each].state();
        const bool is_in_turn =
            state == (turn < count ? Member::State::kGood : Member::State::kLeaving);
        if ((used & uint64_t{1} << each) != 0 || !is_in_turn) continue;
        Place place;
        const hanare_status status = take(members[each], each, place);
        if (status == HANARE_STATUS_OK) {
            group.offer_place(role, place);
            return HANARE_STATUS_OK;
        }
        if (status == HANARE_STATUS_STORE_FULL) continue;
        if (layout.spares() != 0) members.lose(members[each], layout.spares());
        last = status;
    }
    // With one lost there may be too few: what it should have, redundancy makes up for.
    if (members.lost() > layout.spares()) return last;
    const auto place = members.place_on_lost(used);
    if (!place) return last;
    group.offer_place(role, *place);
    members[place->member].chunks.fetch_sub(1);  // the group tells from now on
    return HANARE_STATUS_OK;
}

std::optional<Place> SharedRoom::take_chunk(Members& members, uint32_t number) noexcept {
    Place place;
    if (take(members[number], number, place) != HANARE_STATUS_OK) return std::nullopt;
    return place;
}

void SharedRoom::note_groups(uint64_t end) noexcept {
    std::atomic<uint64_t>& known = shared().groups_end;
    uint64_t seen = known.load();
    while (seen < end && !known.compare_exchange_weak(seen, end)) {
    }
}

hanare_status SharedRoom::take(Member& member, uint32_t number, Place& place) noexcept {
    std::atomic<uint64_t>& used = shared().used_chunks[number];
    uint64_t next = used.load(std::memory_order_relaxed);
    for (;;) {
        place = {number, next * Layout::kChunkBytes};
        const hanare_status status = member.store().cover(place.offset + Layout::kChunkBytes);
        if (status != HANARE_STATUS_OK) return status;
        if (used.compare_exchange_strong(next, next + 1)) return HANARE_STATUS_OK;
    }
}

}  // namespace hanare::compose
