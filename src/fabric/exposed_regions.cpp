// SPDX-License-Identifier: Apache-2.0
#include "fabric/exposed_regions.hpp"

#include <cerrno>

#include "base/units.hpp"
#include "fabric/fifo.hpp"
#include "sys/lock.hpp"
#include "sys/process_namespace.hpp"
#include "sys/random.hpp"
#include "sys/raw_thread.hpp"
#include "sys/shared_memory.hpp"
#include "sys/signal.hpp"

namespace hanare::fabric {
namespace {

constexpr uint32_t kYield_us = 20;
// One that is stopped is waited for until it goes on: it would write.
template <typename Condition>
void wait_while(Condition is_so) noexcept {
    while (is_so()) sys::yield_for_us(kYield_us);
}

}  // namespace

void ExposedRegions::Access::end() noexcept {
    if (slot_ == nullptr) return;
    slot_->users.fetch_sub(1, std::memory_order_release);
    slot_ = nullptr;
}

// Accesses are short, so there is nothing to sleep on; but the thread may not be running.
void ExposedRegions::close(uint32_t region, Slot& slot) noexcept {
    if (page_ != nullptr) page_->epochs[region].store(0);
    slot.users.fetch_or(Slot::kClosed);
    sys::SpinWait wait;
    while (slot.users.load(std::memory_order_acquire) != Slot::kClosed) {
        if (!wait.spin()) sys::yield_for_us(kYield_us);
    }
}

// Who has come to a closed door counts for a moment, too.
void ExposedRegions::open(uint32_t region, Slot& slot) noexcept {
    slot.users.fetch_and(~Slot::kClosed, std::memory_order_release);
    if (page_ != nullptr) page_->epochs[region].store(slot.epoch);
}

// Other memory with the same content, if anybody has what there is.
Result<void> ExposedRegions::take_from_attached(Slot& slot) {
    if (!slot.has_attachments) return {};
    HANARE_TRY_ASSIGN(slot.file, sys::replace_shared_memory(slot.memory, slot.file));
    if ((slot.rights & (kPush | kPop | kSignal)) != 0) Fifo(slot.memory).forget_holder();
    slot.has_attachments = false;
    return {};
}

Result<uint32_t> ExposedRegions::expose(std::span<std::byte> memory, Rights rights,
                                        sys::FileDescriptor file) {
    if (memory.empty() || rights == 0 || (rights & ~kAllRights) != 0) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "exposing %zu bytes with rights 0x%x: needs memory and rights", memory.size(),
                    rights);
    }
    Keys keys;
    HANARE_TRY(sys::fill_random(std::as_writable_bytes(std::span(keys))));
    auto fresh = std::make_unique<Slot>();
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(lock_);
    for (uint32_t number = 0; number < kRegionsMax; ++number) {
        if (used_slot(number) != nullptr) continue;
        if (owned_[number] == nullptr) {
            owned_[number] = std::move(fresh);
            slots_[number].store(owned_[number].get(), std::memory_order_release);
        }
        Slot& slot = *owned_[number];
        ++slot.epoch;
        slot.rights = rights;
        slot.memory = memory;
        slot.keys = keys;
        slot.file = std::move(file);
        slot.has_attachments = false;
        open(number, slot);
        return number;
    }
    return fail(HANARE_STATUS_LIMIT, "exposing a region: there are %u already, no more are allowed",
                kRegionsMax);
}

ExposedRegions::Slot* ExposedRegions::used_slot(uint32_t region) const {
    if (region >= kRegionsMax) return nullptr;
    Slot* const slot = owned_[region].get();
    return slot == nullptr || slot->memory.empty() ? nullptr : slot;
}

Result<Capability> ExposedRegions::capability(uint32_t region, Rights rights) const {
    const std::lock_guard unchanging(changes_);
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(lock_);
    const Slot* const slot = used_slot(region);
    if (slot == nullptr) return fail(HANARE_STATUS_NOT_FOUND, "region %u: not exposed", region);
    if (rights == 0 || (rights & ~slot->rights) != 0) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "region %u: a capability with rights 0x%x; it was exposed with 0x%x", region,
                    rights, slot->rights);
    }
    return Capability{region, slot->epoch, rights, 0, slot->keys[rights]};
}

// Until it is open again no key allows anything, nobody is inside, and who was about to attach
// finds another epoch.
Result<ExposedRegions::Slot*> ExposedRegions::close_with(const Keys& keys, uint32_t region) {
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(lock_);
    Slot* const slot = used_slot(region);
    if (slot == nullptr) return fail(HANARE_STATUS_NOT_FOUND, "region %u: not exposed", region);
    close(region, *slot);
    ++slot->epoch;
    slot->keys = keys;
    return slot;
}

// The copy is made without lock_, which the serving thread needs for others.
Result<void> ExposedRegions::revoke(uint32_t region) {
    Keys keys;
    HANARE_TRY(sys::fill_random(std::as_writable_bytes(std::span(keys))));
    const std::lock_guard changing(changes_);
    HANARE_TRY_ASSIGN(Slot* const slot, close_with(keys, region));
    wait_for_visitors_of(region);
    const Result<void> taken = take_from_attached(*slot);
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(lock_);
    if (taken) {
        open(region, *slot);
    } else {
        forget(*slot);
    }
    return taken;
}

Result<void> ExposedRegions::conceal(uint32_t region, sys::FileDescriptor* file) {
    const std::lock_guard changing(changes_);
    HANARE_TRY_ASSIGN(Slot* const slot, close_with({}, region));
    wait_for_visitors_of(region);
    Result<void> taken = take_from_attached(*slot);
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(lock_);
    if (file != nullptr && taken) *file = std::move(slot->file);
    forget(*slot);
    return taken;
}

// Who looks at the slot after it was closed does not go on.
void ExposedRegions::wait_for_visitors_of(uint32_t region) const noexcept {
    if (directory_ == nullptr) return;
    wait_while([&] { return directory_->is_visited(task_, region + 1); });
}

void ExposedRegions::wait_for_visitors() const noexcept {
    if (directory_ == nullptr) return;
    // The end of serving is before the look at visits, as a visit is before the look at serving.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    wait_while([&] { return directory_->is_visited(task_); });
}

void ExposedRegions::forget(Slot& slot) noexcept {
    slot.memory = {};
    slot.keys = {};
    slot.file.close();
}

// ---- for processes of this machine

Result<sys::FileDescriptor> ExposedRegions::share_page() {
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(lock_);
    if (page_ == nullptr) {
        HANARE_TRY_ASSIGN(sys::FileDescriptor file, sys::create_shared_memory(kRegionPageBytes));
        HANARE_TRY_ASSIGN(sys::Mapping memory,
                          sys::Mapping::reserve(kRegionPageBytes, kOsPageBytes));
        HANARE_TRY(sys::map_shared(memory, file));
        auto* const page = reinterpret_cast<RegionPage*>(memory.address());
        if (const int error = page->serving.prepare(); error != 0) {
            return fail_errno(HANARE_STATUS_SYSTEM, error, "cannot make a robust mutex");
        }
        if (task::Directory* const directory = task::Directory::here(); directory != nullptr) {
            const auto task = directory->task_of(sys::raw_process_id());
            task_ = task.value_or(0);
            directory_ = task ? directory : nullptr;
        }
        page_file_ = std::move(file);
        page_memory_ = std::move(memory);
        page_ = page;
        for (uint32_t number = 0; number < kRegionsMax; ++number) {
            const Slot* const slot = used_slot(number);
            const bool is_open = slot != nullptr && (slot->users.load() & Slot::kClosed) == 0;
            page_->epochs[number].store(is_open ? slot->epoch : 0);
        }
    }
    return sys::reopen_read_only(page_file_);
}

void ExposedRegions::begin_to_serve() noexcept {
    if (page_ == nullptr) return;
    page_->process.store(sys::raw_process_id());
    page_->process_namespace.store(sys::process_namespace());
    page_->serving.begin();
}

void ExposedRegions::end_serving() noexcept {
    if (page_ != nullptr) page_->serving.end();
}

Result<ExposedRegions::Attachment> ExposedRegions::attach(const Capability& capability) {
    Access access;
    if (const hanare_status status = enter(capability, 0, 0, 0, access);
        status != HANARE_STATUS_OK) {
        return fail(status, "attaching to region %u: the capability does not hold",
                    capability.region);
    }
    const std::span<std::byte> memory = access.region();
    // Who closes the region waits for accesses, and holds the lock.
    access.end();
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(lock_);
    Slot* const slot = used_slot(capability.region);
    if (slot == nullptr || slot->epoch != capability.epoch) {
        return fail(HANARE_STATUS_BAD_KEY, "attaching to region %u: revoked", capability.region);
    }
    Attachment attachment = {
        {}, reinterpret_cast<uint64_t>(memory.data()), uint64_t{memory.size()}};
    if (!slot->file.is_open()) return attachment;
    slot->has_attachments = true;
    if ((capability.rights & ~kRead) == 0) {
        HANARE_TRY_ASSIGN(attachment.file, sys::reopen_read_only(slot->file));
    } else {
        attachment.file = sys::duplicate(slot->file);
        if (!attachment.file.is_open()) {
            return fail_errno(HANARE_STATUS_SYSTEM, errno, "attaching to region %u",
                              capability.region);
        }
    }
    return attachment;
}

ExposedRegions::Slot* ExposedRegions::made_slot(const Capability& capability) const noexcept {
    if (capability.region >= kRegionsMax || (capability.rights & ~kAllRights) != 0) return nullptr;
    return slots_[capability.region].load(std::memory_order_acquire);
}

hanare_status ExposedRegions::check(const Slot& slot, const Capability& capability, Rights needed,
                                    uint64_t offset, uint64_t bytes) noexcept {
    if (slot.epoch != capability.epoch || !(slot.keys[capability.rights] == capability.key)) {
        return HANARE_STATUS_BAD_KEY;
    }
    if ((capability.rights & needed) != needed) return HANARE_STATUS_PERMISSION;
    if (offset > slot.memory.size() || bytes > slot.memory.size() - offset) {
        return HANARE_STATUS_OUT_OF_RANGE;
    }
    return HANARE_STATUS_OK;
}

hanare_status ExposedRegions::enter(const Capability& capability, Rights needed, uint64_t offset,
                                    uint64_t bytes, Access& access) noexcept {
    access.end();
    Slot* const slot = made_slot(capability);
    if (slot == nullptr) return HANARE_STATUS_BAD_KEY;
    const uint32_t before = slot->users.fetch_add(1, std::memory_order_acquire);
    access.slot_ = slot;
    const hanare_status status = (before & Slot::kClosed) != 0
                                     ? HANARE_STATUS_BAD_KEY
                                     : check(*slot, capability, needed, offset, bytes);
    if (status == HANARE_STATUS_OK) {
        access.address_ = slot->memory.data() + offset;
    } else {
        access.end();
    }
    return status;
}

hanare_status ExposedRegions::look(const Capability& capability, Rights needed, uint64_t offset,
                                   uint64_t bytes, std::span<std::byte>& region) const noexcept {
    const Slot* const slot = made_slot(capability);
    if (slot == nullptr || (slot->users.load() & Slot::kClosed) != 0) return HANARE_STATUS_BAD_KEY;
    region = slot->memory;
    return check(*slot, capability, needed, offset, bytes);
}

}  // namespace hanare::fabric
