// SPDX-License-Identifier: Apache-2.0
//
// ComposedStore, as far as processes share its slots.
#include <algorithm>

#include "base/units.hpp"
#include "compose/composed_store.hpp"
#include "sys/process_usage.hpp"
#include "sys/shared_memory.hpp"

namespace hanare::compose {

Result<store::SlotTable> ComposedStore::open_slots(uint64_t slot_bytes) {
    // Where addresses are limited, the table takes one in so many of them.
    constexpr uint64_t kAddressesShare = 16;
    constexpr uint64_t kSlotsMax = uint64_t{1} << 26;
    HANARE_TRY(share(slot_bytes));
    const uint64_t slots =
        std::min({groups_.groups() * layout_.group_bytes() / slot_bytes, kSlotsMax,
                  sys::free_address_bytes() / kAddressesShare / sizeof(uint64_t)});
    HANARE_TRY_ASSIGN(life_, sys::create_shared_memory(kOsPageBytes));
    const auto fence = [](void* store, uint64_t rows) noexcept {
        return static_cast<ComposedStore*>(store)->fence(rows);
    };
    HANARE_TRY_ASSIGN(auto table,
                      store::SlotTable::create(static_cast<uint32_t>(slots), life_.number(),
                                               {.function = fence, .context = this},
                                               store::SlotTable::Spread::kDense));
    HANARE_TRY(take_part(table.row()));
    return table;
}

Result<void> ComposedStore::share(uint64_t slot_bytes) {
    if (layout_.kind == Kind::kParity && slot_bytes < layout_.stripe_bytes()) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "blocks of %s are too small for parity %u+1: at least %s",
                    format_size(slot_bytes).c_str(), layout_.data,
                    format_size(layout_.stripe_bytes()).c_str());
    }
    slots_in_members_bytes_ = slot_bytes / layout_.data;
    HANARE_TRY_ASSIGN(groups_, GroupTable::make(layout_.total, layout_.group_bytes(),
                                                GroupTable::For::kChildrenToo));
    HANARE_TRY_ASSIGN(room_, SharedRoom::make(members_));
    HANARE_TRY_ASSIGN(zeros_, sys::Mapping::reserve(Layout::kChunkBytes, kOsPageBytes));
    HANARE_TRY(healer_.prepare_turns());
    for (uint32_t number = 0; number < members_.count(); ++number) {
        HANARE_TRY(members_[number].store().share(slots_in_members_bytes_));
    }
    return {};
}

hanare_status ComposedStore::cover(uint64_t end) noexcept {
    if (!room_) return HANARE_STATUS_OK;
    const uint64_t wanted = round_up(end, layout_.group_bytes()) / layout_.group_bytes();
    uint64_t covered = covered_groups_.load(std::memory_order_acquire);
    if (wanted <= covered) return HANARE_STATUS_OK;
    if (wanted > groups_.groups()) return HANARE_STATUS_STORE_FULL;
    for (uint64_t number = covered; number < wanted; ++number) {
        room_->note_groups(number + 1);
        const hanare_status status = room_->cover(layout_, members_, groups_.group(number));
        if (status != HANARE_STATUS_OK) return status;
    }
    while (covered < wanted && !covered_groups_.compare_exchange_weak(covered, wanted)) {
    }
    return HANARE_STATUS_OK;
}

bool ComposedStore::renew(uint64_t offset, uint64_t bytes) noexcept {
    const Group group = group_at(offset);
    group.enter();
    const bool is_zero = renew_in(group, offset % layout_.group_bytes(), bytes);
    group.leave();
    return is_zero;
}

// Strips are divided as the slots are, so each part of the slot is a part of a chunk.
bool ComposedStore::renew_in(const Group& group, uint64_t within, uint64_t bytes) noexcept {
    const uint64_t in_chunk = layout_.spot_of(within).offset;
    const uint64_t of_chunk = std::max(bytes / layout_.data, kOsPageBytes);
    bool is_zero = true;
    for (uint32_t role = 0; role < layout_.total; ++role) {
        const Member* const member = io_.member_of(group, role);
        if (member == nullptr) continue;
        is_zero &= member->store().renew(group.place(role)->offset + in_chunk, of_chunk);
    }
    if (is_zero || layout_.kind != Kind::kParity) return is_zero;
    // A process may have been killed between a strip and its parity.
    return io_.write(group, within, zeros_.address(), bytes) == HANARE_STATUS_OK;
}

// A store's, of which chunks lie in a member.
class ComposedStore::MemberUsers final : public store::SlotUsers {
public:
    MemberUsers(const ComposedStore& store, uint32_t member, store::SlotUsers& users) noexcept
        : store_(store), member_(member), users_(users) {}

    bool is_alone() noexcept override { return users_.is_alone(); }
    uint64_t unit_bytes() const noexcept override {
        return std::max(users_.unit_bytes() / store_.layout_.data, kOsPageBytes);
    }
    Content content_of(uint64_t offset, uint64_t bytes) noexcept override {
        Content content = Content::kNone;
        for (uint64_t at = offset; at < offset + bytes;) {
            const uint64_t chunk_end = round_down(at, Layout::kChunkBytes) + Layout::kChunkBytes;
            const uint64_t end = std::min(offset + bytes, chunk_end);
            content = std::max(content, content_in_chunk(at, end));
            at = end;
        }
        return content;
    }

private:
    Content content_in_chunk(uint64_t begin, uint64_t end) noexcept {
        const uint64_t chunk = round_down(begin, Layout::kChunkBytes);
        if (!has_chunk(group_, chunk) && !find(chunk)) return Content::kNone;
        const Layout& layout = store_.layout_;
        const uint64_t strip = std::min(layout.strip_bytes, unit_bytes());
        const uint64_t first = round_down(begin - chunk, strip) * layout.data;
        const uint64_t last = round_up(end - chunk, strip) * layout.data;
        return users_.content_of(group_ * layout.group_bytes() + first, last - first);
    }
    bool has_chunk(uint64_t number, uint64_t chunk) const noexcept {
        const Group group = store_.groups_.group(number);
        for (uint32_t role = 0; role < store_.layout_.total; ++role) {
            const auto place = group.place(role);
            if (place && place->member == member_ && place->offset == chunk) return true;
        }
        return false;
    }
    // Nearly always in the next group.
    bool find(uint64_t chunk) noexcept {
        const uint64_t end = store_.room_->groups_end();
        for (uint64_t turn = 1; turn <= end; ++turn) {
            const uint64_t number = (group_ + turn) % end;
            if (!has_chunk(number, chunk)) continue;
            group_ = number;
            return true;
        }
        return false;
    }

    const ComposedStore& store_;
    const uint32_t member_;
    store::SlotUsers& users_;
    uint64_t group_ = 0;  // that was looked for last
};

bool ComposedStore::tend(store::SlotUsers& users) noexcept {
    if (!room_) return false;
    bool has_more = false;
    for (uint32_t number = 0; number < members_.count(); ++number) {
        MemberUsers members_users(*this, number, users);
        if (members_[number].is_used()) has_more |= members_[number].store().tend(members_users);
    }
    // Of what others have in the end, too; the last groups may have got no chunks.
    if (healer_.has_work()) static_cast<void>(cover(room_->groups_end() * layout_.group_bytes()));
    return healer_.take_turn({*room_, users, covered_groups_.load()}) || has_more;
}

Result<void> ComposedStore::take_part(uint32_t row) {
    row_ = row;
    for (uint32_t number = 0; number < members_.count(); ++number) {
        HANARE_TRY(members_[number].store().take_part(row));
    }
    return {};
}

bool ComposedStore::fence(uint64_t rows) noexcept {
    for (uint32_t number = 0; number < members_.count(); ++number) {
        Member& member = members_[number];
        if (!member.is_used() || member.store().fence(rows)) continue;
        if (layout_.spares() == 0 || member.store().trouble() == nullptr) return false;
        members_.lose(member, layout_.spares());
    }
    return true;
}

bool ComposedStore::prepare_fork(uint32_t row) noexcept {
    childs_row_ = row;
    for (uint32_t number = 0; number < members_.count(); ++number) {
        Member& member = members_[number];
        if (member.state() == Member::State::kGone) continue;
        const auto is_lost = [&] {
            if (layout_.spares() != 0 && member.store().trouble() != nullptr) {
                members_.lose(member, layout_.spares());
            }
            return member.is_lost();
        };
        if (is_lost()) continue;
        if (member.store().prepare_fork(row)) {
            forking_ |= uint64_t{1} << number;
            continue;
        }
        // It may be gone without anybody having noticed; an answer tells.
        if (layout_.spares() != 0) static_cast<void>(member.store().wants_to_leave());
        if (is_lost()) continue;
        finish_fork();
        return false;
    }
    return true;
}

void ComposedStore::finish_fork() noexcept {
    for (uint32_t number = 0; number < members_.count(); ++number) {
        if ((forking_ >> number & 1) != 0) members_[number].store().finish_fork();
    }
    forking_ = 0;
}

void ComposedStore::become_child() noexcept {
    row_ = childs_row_;
    for (uint32_t number = 0; number < members_.count(); ++number) {
        if ((forking_ >> number & 1) != 0) {
            members_[number].store().become_child();
        } else {
            members_[number].leave_to_parent();
        }
    }
    forking_ = 0;
}

}  // namespace hanare::compose
