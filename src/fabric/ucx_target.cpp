// SPDX-License-Identifier: Apache-2.0
#ifdef HANARE_HAVE_UCX

#include "fabric/ucx_target.hpp"

#include <cstring>

#include "fabric/ucx_library.hpp"
#include "sys/clock.hpp"
#include "sys/futex.hpp"
#include "sys/lock.hpp"
#include "sys/signal.hpp"

namespace hanare::fabric {
namespace {

// Between two calls of UCX while sources connect.
constexpr uint32_t kPause_us = 50;
// Between two looks whether memory may be given back.
constexpr int kGivingBack_ms = 200;

Result<UcxCard::Entry> entry_of(const UcxMemory& memory, uint32_t epoch) {
    UcxCard::Entry entry;
    if (memory.key().size() > UcxCard::Entry::kKeyBytesMax) {
        return fail(HANARE_STATUS_LIMIT, "UCX: a key of %zu bytes, at most %u have room",
                    memory.key().size(), UcxCard::Entry::kKeyBytesMax);
    }
    entry.epoch = epoch;
    entry.address = memory.remote_address();
    entry.bytes = memory.bytes();
    entry.key_bytes = static_cast<uint32_t>(memory.key().size());
    std::memcpy(entry.key, memory.key().data(), memory.key().size());
    entry.check = check_of(entry);
    return entry;
}

std::unexpected<Error> unknown(uint32_t region) {
    return fail(HANARE_STATUS_NOT_FOUND, "region %u: not exposed over UCX", region);
}

}  // namespace

Result<std::unique_ptr<UcxTarget>> UcxTarget::open(const UcxContext& context,
                                                   ExposedRegions& regions) {
    std::unique_ptr<UcxTarget> target(new UcxTarget(context, regions));
    HANARE_TRY_ASSIGN(target->worker_, context.make_worker());
    HANARE_TRY(target->make_card());
    return target;
}

UcxTarget::~UcxTarget() {
    for (const auto& [region, exposed] : exposed_) {
        withdraw(region);
        (void)regions_.conceal(region);
    }
    if (card_region_ != kRegionsMax) (void)regions_.conceal(card_region_);
    if (worker_ != nullptr) context_.library().worker_destroy(worker_);
}

// ---- the card

Result<void> UcxTarget::make_card() {
    HANARE_TRY_ASSIGN(card_memory_, UcxMemory::allocate(context_, sizeof(UcxCard)));
    constexpr Rights kRights = kRead | kAtomic;
    HANARE_TRY_ASSIGN(card_region_,
                      regions_.expose({card_memory_->address(), card_memory_->bytes()}, kRights));
    HANARE_TRY_ASSIGN(card_capability_, regions_.capability(card_region_, kRights));
    return fill_header();
}

Result<void> UcxTarget::fill_header() {
    const UcxLibrary& library = context_.library();
    UcxCard::Header header;
    HANARE_TRY_ASSIGN(header.card, entry_of(*card_memory_, card_capability_.epoch));
    ucp_address_t* address = nullptr;
    size_t bytes = 0;
    const ucs_status_t status = library.worker_get_address(worker_, &address, &bytes);
    if (status != UCS_OK) {
        return fail(HANARE_STATUS_SYSTEM, "UCX: the address of a worker: %.120s",
                    library.status_text(status));
    }
    const bool has_room = bytes <= sizeof header.address;
    if (has_room) std::memcpy(header.address, address, bytes);
    library.worker_release_address(worker_, address);
    if (!has_room) {
        return fail(HANARE_STATUS_LIMIT, "UCX: an address of %zu bytes, at most %u have room",
                    bytes, UcxCard::kAddressBytesMax);
    }
    header.address_bytes = static_cast<uint32_t>(bytes);
    header.check = check_of(header);
    card_page().header = header;
    return {};
}

// ---- regions

Result<uint32_t> UcxTarget::expose(UcxMemory& memory, Rights rights) {
    const std::lock_guard guard(lock_);
    HANARE_TRY_ASSIGN(const uint32_t number,
                      regions_.expose({memory.address(), memory.bytes()}, rights));
    const Result<void> published = publish(number, rights, memory);
    if (!published) {
        (void)regions_.conceal(number);
        return std::unexpected(published.error());
    }
    exposed_[number] = {&memory, rights};
    return number;
}

Result<void> UcxTarget::publish(uint32_t region, Rights rights, const UcxMemory& memory) {
    if (region >= UcxCard::kEntries) {
        return fail(HANARE_STATUS_LIMIT, "UCX: region %u: the card has room for those below %u",
                    region, UcxCard::kEntries);
    }
    const Rights any = rights & (~rights + 1);
    HANARE_TRY_ASSIGN(const Capability current, regions_.capability(region, any));
    HANARE_TRY_ASSIGN(card_page().entries[region], entry_of(memory, current.epoch));
    card_page().epochs[region].store(current.epoch);
    return {};
}

// The capability ends first, then the way by UCX, then others have no more than a copy.  What a
// source has done it had done before that, and it is in the copy; or the source sees, since it
// looks at the epoch afterwards, that it may not be.  Then it asks the base link, by which nothing
// is allowed any more: nothing is done twice.
Result<void> UcxTarget::revoke(uint32_t region) {
    const std::lock_guard guard(lock_);
    const auto found = exposed_.find(region);
    if (found == exposed_.end()) return unknown(region);
    const Result<void> revoked = regions_.revoke(region);
    withdraw(region);
    HANARE_TRY(revoked);
    HANARE_TRY(replace(*found->second.memory));
    return publish(region, found->second.rights, *found->second.memory);
}

Result<void> UcxTarget::conceal(uint32_t region) {
    const std::lock_guard guard(lock_);
    const auto found = exposed_.find(region);
    if (found == exposed_.end()) return unknown(region);
    UcxMemory& memory = *found->second.memory;
    exposed_.erase(found);
    const Result<void> concealed = regions_.conceal(region);
    withdraw(region);
    HANARE_TRY(concealed);
    return replace(memory);
}

// Whoever asks from now on gets no key of the memory that is there.
void UcxTarget::withdraw(uint32_t region) noexcept {
    card_page().epochs[region].store(0);
    card_page().entries[region] = {};
}

Result<void> UcxTarget::replace(UcxMemory& memory) {
    const Result<void> replaced = memory.replace();
    // Which gives back what was there, in a while.
    sys::shared_futex_wake_all(card_page().wanted);
    return replaced;
}

// ---- the thread

void UcxTarget::run() noexcept {
    const sys::SignalBlock no_signals;
    UcxCard& card = card_page();
    for (;;) {
        // Before the look at is_ending_: whoever ends it changes the word after that.
        const uint32_t wanted = card.wanted.load();
        if (is_ending_.load()) return;
        if (wanted != card.served.load()) {
            serve_connecting();
        } else {
            const bool is_some_left = context_.give_back_due();
            sys::shared_futex_wait(card.wanted, wanted, is_some_left ? kGivingBack_ms : -1);
        }
    }
}

void UcxTarget::serve_connecting() noexcept {
    UcxCard& card = card_page();
    uint32_t wanted = card.wanted.load();
    uint64_t end_ns = sys::now_ns() + kConnecting_ns;
    while (!is_ending_.load() && sys::now_ns() < end_ns && wanted != card.served.load()) {
        card.calls.fetch_add(1);
        context_.library().worker_progress(worker_);
        card.calls.fetch_add(1);
        sys::yield_for_us(kPause_us);
        if (const uint32_t latest = card.wanted.load(); latest != wanted) {
            wanted = latest;
            end_ns = sys::now_ns() + kConnecting_ns;
        }
    }
    if (sys::now_ns() >= end_ns) card.served.store(wanted);
}

void UcxTarget::stop() noexcept {
    is_ending_.store(true);
    UcxCard& card = card_page();
    card.served.fetch_add(1);
    card.wanted.fetch_add(1);
    sys::shared_futex_wake_all(card.wanted);
}

}  // namespace hanare::fabric

#endif
