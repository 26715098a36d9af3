// SPDX-License-Identifier: Apache-2.0
#include "compose/composed_store.hpp"

#include <algorithm>
#include <array>

#include "base/units.hpp"
#include "compose/composed_channel.hpp"
#include "compose/composed_transfers.hpp"
#include "sys/signal.hpp"

namespace hanare::compose {

namespace {

// Longer than a chunk takes to move.
constexpr int kCloseMs = 100;

// For who must: transfers end, and so does the moving of a chunk.
void close_surely(const Group& group) noexcept {
    while (!group.close(kCloseMs)) sys::yield_for_us(0);
}

}  // namespace

Result<std::unique_ptr<store::Store>> ComposedStore::open(
    const Layout& layout, std::vector<std::unique_ptr<store::Store>> members, Healing healing,
    OpenMember open_member) {
    if (members.size() < layout.total) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "%zu stores are too few: with this redundancy there have to be %u",
                    members.size(), layout.total);
    }
    HANARE_TRY_ASSIGN(auto groups, GroupTable::make(layout.total, layout.group_bytes(),
                                                    GroupTable::For::kProcess));
    HANARE_TRY_ASSIGN(auto lanes, Lanes::make());
    auto store = std::unique_ptr<ComposedStore>(
        new ComposedStore(layout, std::move(groups), std::move(lanes), std::move(open_member)));
    for (auto& member : members) HANARE_TRY(store->members_.add(std::move(member)));
    if (healing == Healing::kByThread) {
        HANARE_TRY(store->healer_.start());
    } else {
        store->members_.say_what_is_lost();
    }
    return store;
}

ComposedStore::ComposedStore(const Layout& layout, GroupTable groups, Lanes lanes,
                             OpenMember open_member)
    : layout_(layout),
      groups_(std::move(groups)),
      members_(layout_.kind),
      io_(layout_, members_, std::move(lanes)),
      extents_(groups_.groups() * layout_.group_bytes()),
      open_member_(std::move(open_member)),
      healer_(layout_, groups_, members_, io_,
              [this](const std::string& spec) { return open_wanted(spec); }) {}

ComposedStore::~ComposedStore() { healer_.stop(); }

// Like those that were there before its slots were opened.  Where nothing else could fail without
// ending the program, there has to be memory for it.
Result<std::unique_ptr<store::Store>> ComposedStore::open_wanted(const std::string& spec) {
    constexpr size_t kRoomBytes = 16 * kMiB;
    HANARE_TRY(sys::Mapping::reserve(kRoomBytes, kOsPageBytes));
    HANARE_TRY_ASSIGN(auto store, open_member_(spec));
    if (layout_.spares() != 0 && is_where_a_member_is(*store)) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "it is among the members: what would be lost together is no redundancy");
    }
    if (!room_) return store;
    HANARE_TRY(store->share(slots_in_members_bytes_));
    HANARE_TRY(store->take_part(row_));
    return store;
}

// By the place that descriptions begin with.
bool ComposedStore::is_where_a_member_is(const store::Store& store) const {
    const auto place_of = [](const std::string& description) {
        return description.substr(0, description.find(", "));
    };
    const std::string place = place_of(store.describe());
    for (uint32_t number = 0; number < members_.count(); ++number) {
        const Member& member = members_[number];
        if (member.is_used() && place_of(member.name()) == place) return true;
    }
    return false;
}

std::unexpected<Error> ComposedStore::no_room(uint64_t bytes) const {
    return fail(HANARE_STATUS_STORE_FULL, "no room for %s in all of: %s",
                format_size(bytes).c_str(), members_.names().c_str());
}

Result<uint64_t> ComposedStore::reserve(uint64_t bytes) {
    const uint64_t group_bytes = layout_.group_bytes();
    const uint64_t all_bytes = groups_.groups() * group_bytes;
    if (bytes == 0 || bytes > all_bytes) return no_room(bytes);
    const uint64_t extent_bytes = round_up(bytes, group_bytes);
    std::optional<uint64_t> offset;
    {
        const sys::SignalBlock block;
        const sys::LockGuard guard(lock_);
        offset = extents_.reserve(extent_bytes);
    }
    if (!offset) return no_room(bytes);
    uint64_t full = 0;
    const uint64_t first = *offset / group_bytes;
    const uint64_t last = first + extent_bytes / group_bytes;
    // Before, since groups with parity keep what they have got where there is no room for all.
    healer_.note_groups(last);
    for (uint64_t number = first; number < last; ++number) {
        if (give_chunks(groups_.group(number), full)) continue;
        release(*offset, bytes);
        return no_room(bytes);
    }
    return *offset;
}

// Roles go round the members, so that each has as much of data and parity as the others.
bool ComposedStore::give_chunks(const Group& group, uint64_t& full) {
    if (group.place(0)) return true;
    std::array<Place, Layout::kRolesMax> places;
    uint64_t used = 0;
    uint32_t count = 0;
    for (; count < layout_.total; ++count) {
        auto place = members_.take_chunk(used, full);
        if (!place && members_.lost() <= layout_.spares()) place = members_.place_on_lost(used);
        if (!place) break;
        places[count] = *place;
        used |= uint64_t{1} << place->member;
    }
    if (count < layout_.total) {
        for (uint32_t i = 0; i < count; ++i) members_.give_back(places[i]);
        return false;
    }
    close_surely(group);
    for (uint32_t role = 0; role < layout_.total; ++role) {
        group.set_place(role, places[(role + group.number()) % layout_.total]);
    }
    group.open();
    return true;
}

// With parity a group keeps its chunks for who comes next: parity belongs to what is in them, and
// nobody has to write all of them at first.
void ComposedStore::release(uint64_t offset, uint64_t bytes) noexcept {
    const uint64_t group_bytes = layout_.group_bytes();
    const uint64_t extent_bytes = round_up(bytes, group_bytes);
    for (uint64_t at = offset; at < offset + extent_bytes; at += group_bytes) {
        if (layout_.kind != Kind::kParity) take_chunks_back(group_at(at));
    }
    const sys::SignalBlock block;
    const sys::LockGuard guard(lock_);
    extents_.release(offset, extent_bytes);
}

void ComposedStore::take_chunks_back(const Group& group) noexcept {
    close_surely(group);
    for (uint32_t role = 0; role < layout_.total; ++role) {
        const auto place = group.place(role);
        if (place) members_.give_back(*place);
        group.clear_place(role);
    }
    group.forget_written();
    group.open();
}

template <typename Transfer>
hanare_status ComposedStore::in_groups(uint64_t offset, size_t bytes, Transfer transfer) noexcept {
    hanare_status status = HANARE_STATUS_OK;
    while (bytes != 0 && status == HANARE_STATUS_OK) {
        const uint64_t within = offset % layout_.group_bytes();
        const size_t part = std::min<size_t>(bytes, layout_.group_bytes() - within);
        const Group group = group_at(offset);
        group.enter();
        status = group.place(0) ? transfer(group, within, part) : HANARE_STATUS_OUT_OF_RANGE;
        group.leave();
        offset += part;
        bytes -= part;
    }
    return status;
}

hanare_status ComposedStore::read(uint64_t offset, std::byte* memory, size_t bytes) noexcept {
    return in_groups(offset, bytes, [&](const Group& group, uint64_t within, size_t part) {
        const hanare_status status = io_.read(group, within, memory, part);
        memory += part;
        return status;
    });
}

hanare_status ComposedStore::write(uint64_t offset, const std::byte* memory,
                                   size_t bytes) noexcept {
    return in_groups(offset, bytes, [&](const Group& group, uint64_t within, size_t part) {
        const hanare_status status = io_.write(group, within, memory, part);
        memory += part;
        return status;
    });
}

Result<std::unique_ptr<store::IoChannel>> ComposedStore::open_channel() {
    return ComposedChannel::open(*this);
}

std::unique_ptr<store::SharedTransfers> ComposedStore::open_transfers(
    store::TransferCapacity capacity) {
    if (capacity != store::TransferCapacity::kMany) return nullptr;
    return ComposedTransfers::open(*this);
}

std::string ComposedStore::describe() const {
    switch (layout_.kind) {
        case Kind::kList: break;
        case Kind::kMirror: return "mirror of " + members_.names();
        case Kind::kParity:
            return "parity " + std::to_string(layout_.data) + "+1 of " + members_.names();
    }
    return "in order " + members_.names();
}

void ComposedStore::give_up() noexcept {
    healer_.stop();
    for (uint32_t number = 0; number < members_.count(); ++number) {
        if (members_[number].state() != Member::State::kGone) members_[number].give_up();
    }
}

void ComposedStore::abandon_in_child() noexcept {
    for (uint32_t number = 0; number < members_.count(); ++number) {
        members_[number].store().abandon_in_child();
    }
}

}  // namespace hanare::compose
