// SPDX-License-Identifier: Apache-2.0
#include "fabric/exposed_regions.hpp"

#include "sys/random.hpp"
#include "sys/signal.hpp"

namespace hanare::fabric {
namespace {

constexpr uint32_t kYield_us = 20;

}  // namespace

void ExposedRegions::Access::end() noexcept {
    if (slot_ == nullptr) return;
    slot_->users.fetch_sub(1, std::memory_order_release);
    slot_ = nullptr;
}

// Accesses are short, so there is nothing to sleep on; but the thread may not be running.
void ExposedRegions::close(Slot& slot) noexcept {
    slot.users.fetch_or(Slot::kClosed, std::memory_order_acquire);
    sys::SpinWait wait;
    while (slot.users.load(std::memory_order_acquire) != Slot::kClosed) {
        if (!wait.spin()) sys::yield_for_us(kYield_us);
    }
}

// Who has come to a closed door counts for a moment, too.
void ExposedRegions::open(Slot& slot) noexcept {
    slot.users.fetch_and(~Slot::kClosed, std::memory_order_release);
}

Result<uint32_t> ExposedRegions::expose(std::span<std::byte> memory, Rights rights) {
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
        open(slot);
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

Result<void> ExposedRegions::revoke(uint32_t region) {
    Keys keys;
    HANARE_TRY(sys::fill_random(std::as_writable_bytes(std::span(keys))));
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(lock_);
    Slot* const slot = used_slot(region);
    if (slot == nullptr) return fail(HANARE_STATUS_NOT_FOUND, "region %u: not exposed", region);
    close(*slot);
    ++slot->epoch;
    slot->keys = keys;
    open(*slot);
    return {};
}

Result<void> ExposedRegions::conceal(uint32_t region) {
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(lock_);
    Slot* const slot = used_slot(region);
    if (slot == nullptr) return fail(HANARE_STATUS_NOT_FOUND, "region %u: not exposed", region);
    close(*slot);
    slot->memory = {};
    slot->keys = {};
    return {};
}

hanare_status ExposedRegions::enter(const Capability& capability, Rights needed, uint64_t offset,
                                    uint64_t bytes, Access& access) noexcept {
    access.end();
    if (capability.region >= kRegionsMax || (capability.rights & ~kAllRights) != 0) {
        return HANARE_STATUS_BAD_KEY;
    }
    Slot* const made = slots_[capability.region].load(std::memory_order_acquire);
    if (made == nullptr) return HANARE_STATUS_BAD_KEY;
    Slot& slot = *made;
    const uint32_t before = slot.users.fetch_add(1, std::memory_order_acquire);
    access.slot_ = &slot;
    hanare_status status = HANARE_STATUS_OK;
    if ((before & Slot::kClosed) != 0 || slot.epoch != capability.epoch ||
        !(slot.keys[capability.rights] == capability.key)) {
        status = HANARE_STATUS_BAD_KEY;
    } else if ((capability.rights & needed) != needed) {
        status = HANARE_STATUS_PERMISSION;
    } else if (offset > slot.memory.size() || bytes > slot.memory.size() - offset) {
        status = HANARE_STATUS_OUT_OF_RANGE;
    }
    if (status == HANARE_STATUS_OK) {
        access.address_ = slot.memory.data() + offset;
    } else {
        access.end();
    }
    return status;
}

}  // namespace hanare::fabric
