// SPDX-License-Identifier: Apache-2.0
//
// ComposedStore: several stores as one (layout.hpp says how).  Members that are lost or leave are
// made up for in the background (healer.hpp), and others may come.
//
// The bytes of a composed store live in chunks of 4 MiB, so a region takes that much at least of
// each member that it lies in.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/thread_annotations.hpp"
#include "compose/group_io.hpp"
#include "compose/group_table.hpp"
#include "compose/healer.hpp"
#include "compose/layout.hpp"
#include "compose/members.hpp"
#include "compose/shared_room.hpp"
#include "store/extents.hpp"
#include "store/store.hpp"
#include "sys/file.hpp"
#include "sys/lock.hpp"

namespace hanare::compose {

class ComposedStore final : public store::Store {
public:
    // Whether a thread makes up for members that are lost or leave, and opens those that are asked
    // for; else whoever tends the store does, of one with slots, and a line says that a member is
    // lost.
    enum class Healing { kByThread, kInTurns };
    using OpenMember = Healer::OpenMember;
    // INVALID_ARGUMENT: fewer members than a group has chunks.
    static Result<std::unique_ptr<store::Store>> open(
        const Layout& layout, std::vector<std::unique_ptr<store::Store>> members,
        Healing healing = Healing::kByThread, OpenMember open_member = {});
    ~ComposedStore() override;

    Result<uint64_t> reserve(uint64_t bytes) override;
    void release(uint64_t offset, uint64_t bytes) noexcept override;
    Result<store::SlotTable> open_slots(uint64_t slot_bytes) override;
    Result<void> share(uint64_t slot_bytes) override;
    hanare_status cover(uint64_t end) noexcept override;
    hanare_status read(uint64_t offset, std::byte* memory, size_t bytes) noexcept override;
    hanare_status write(uint64_t offset, const std::byte* memory, size_t bytes) noexcept override;
    Result<std::unique_ptr<store::IoChannel>> open_channel() override;
    // Those of many only, and once at a time: nullptr otherwise.
    std::unique_ptr<store::SharedTransfers> open_transfers(
        store::TransferCapacity capacity) override;
    // By these.  False: there are some.
    bool begin_transfers() noexcept { return !has_transfers_.exchange(true); }
    void end_transfers() noexcept { has_transfers_.store(false); }
    std::string describe() const override;
    int last_errno() const noexcept override { return members_.last_errno(); }
    const char* trouble() const noexcept override { return members_.trouble(layout_.spares()); }
    bool renew(uint64_t offset, uint64_t bytes) noexcept override;
    bool tend(store::SlotUsers& users) noexcept override;
    uint64_t unit_bytes() const noexcept override { return layout_.group_bytes(); }
    Result<void> take_part(uint32_t row) override;
    bool fence(uint64_t rows) noexcept override;
    bool prepare_fork(uint32_t row) noexcept override;
    void finish_fork() noexcept override;
    void become_child() noexcept override;
    bool ask_to_add(std::string_view spec) noexcept override {
        return open_member_ && healer_.ask_to_add(spec);
    }
    const char* added() const noexcept override { return healer_.added(); }
    void give_up() noexcept override;
    void abandon_in_child() noexcept override;

    // One more store, filled after all others; what has lost its redundancy gets it back there.
    Result<void> add(std::unique_ptr<store::Store> store) { return members_.add(std::move(store)); }

    const Layout& layout() const noexcept { return layout_; }
    Members& members() noexcept { return members_; }
    GroupIo& io() noexcept { return io_; }
    Group group_at(uint64_t offset) const noexcept {
        return groups_.group(offset / layout_.group_bytes());
    }
    Healer& healer() noexcept { return healer_; }

private:
    ComposedStore(const Layout& layout, GroupTable groups, Lanes lanes, OpenMember open_member);
    Result<std::unique_ptr<store::Store>> open_wanted(const std::string& spec);
    bool is_where_a_member_is(const store::Store& store) const;
    bool give_chunks(const Group& group, uint64_t& full);
    void take_chunks_back(const Group& group) noexcept;
    std::unexpected<Error> no_room(uint64_t bytes) const;
    class MemberUsers;
    bool renew_in(const Group& group, uint64_t within, uint64_t bytes) noexcept;
    template <typename Transfer>
    hanare_status in_groups(uint64_t offset, size_t bytes, Transfer transfer) noexcept;

    const Layout layout_;
    GroupTable groups_;
    Members members_;
    GroupIo io_;
    sys::RankedLock lock_{sys::LockRank::kLeaf};
    store::ExtentAllocator extents_ HANARE_GUARDED_BY(lock_);
    const OpenMember open_member_;
    Healer healer_;
    std::atomic<bool> has_transfers_{false};

    // Of slots.
    std::optional<SharedRoom> room_;
    sys::FileDescriptor life_;
    sys::Mapping zeros_;
    std::atomic<uint64_t> covered_groups_{0};  // in this process
    uint64_t slots_in_members_bytes_ = 0;
    uint32_t row_ = 0;         // of this process
    uint64_t forking_ = 0;     // members that are prepared, bits
    uint32_t childs_row_ = 0;  // around a fork
};

}  // namespace hanare::compose
