// SPDX-License-Identifier: Apache-2.0
#ifdef HANARE_HAVE_UCX

#include "fabric/ucx_link.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <utility>

#include "fabric/apply.hpp"
#include "sys/clock.hpp"
#include "sys/signal.hpp"

namespace hanare::fabric {
namespace {

// How often the base link looks whether its peer is there.
constexpr uint64_t kLook_ns = 10'000'000;
// What asking for a region may take of an operation's time.
constexpr uint64_t kAsking_ns = 1'000'000'000;
// A card that says nothing of use so often is not asked any more.
constexpr uint32_t kRefusalsMax = 16;

bool is_same(const Capability& a, const Capability& b) noexcept {
    return a.region == b.region && a.epoch == b.epoch && a.rights == b.rights && a.key == b.key;
}

// What UCX could do, as far as the kind tells.
bool is_one_sided(Kind kind) noexcept {
    return kind == Kind::kPut || kind == Kind::kGet || kind == Kind::kFetch;
}

bool is_word(uint64_t address, uint64_t bytes) noexcept {
    return (bytes == sizeof(uint32_t) || bytes == sizeof(uint64_t)) && address % bytes == 0;
}

}  // namespace

Result<std::unique_ptr<UcxLink>> UcxLink::connect(const UcxContext& context,
                                                  std::unique_ptr<Link>& base,
                                                  const Settings& settings) {
    HANARE_TRY_ASSIGN(UcxConnection connection,
                      connect_by_ucx(context, *base, settings.card, settings.timeout_ms));
    return std::unique_ptr<UcxLink>(
        new UcxLink(std::move(base), std::move(connection), settings.card));
}

UcxLink::UcxLink(std::unique_ptr<Link> base, UcxConnection connection,
                 const Capability& card) noexcept
    : base_(std::move(base)),
      card_(card),
      card_place_(connection.card),
      has_fetch_ops_(connection.has_fetch_ops),
      endpoint_(std::move(connection.endpoint)) {}

UcxLink::~UcxLink() {
    base_->end();
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(lock_);
    for (const auto& [place, attached] : attached_) endpoint_->forget(attached.place.key);
    endpoint_->forget(card_place_.key);
    endpoint_.reset();
}

// ---- operations

void UcxLink::post(Operation& operation) noexcept {
    if (!try_by_ucx(operation)) post_to_base(operation);
}

bool UcxLink::test(Operation& operation) noexcept {
    if (!operation.is_done() && !base_->test(operation)) return false;
    note_done(operation);
    return true;
}

hanare_status UcxLink::wait(Operation& operation) noexcept {
    const hanare_status status = operation.is_done() ? operation.status() : base_->wait(operation);
    note_done(operation);
    if (status == HANARE_STATUS_OK) attach_for(operation);
    return status;
}

hanare_status UcxLink::carry_out(Operation& operation) noexcept {
    if (try_by_ucx(operation)) return operation.status();
    post_to_base(operation);
    return wait(operation);
}

void UcxLink::end() noexcept {
    may_use_ucx_.store(false);
    base_->end();
}

// False: it is left to the base link, which also finds whatever is wrong with it.
bool UcxLink::try_by_ucx(Operation& operation) noexcept {
    if (!may_use_ucx_.load() || !may_go_by_ucx(operation)) return false;
    look_for_the_target();
    if (base_->is_lost() || sys::now_ns() >= operation.deadline_ns || !is_settled()) return false;
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(lock_);
    const Attached* const attached = find(operation.capability);
    if (attached == nullptr || attached->place.key == nullptr) return false;
    const uint64_t bytes = operation.bytes();
    if (operation.offset > attached->bytes || bytes > attached->bytes - operation.offset ||
        (operation.kind == Kind::kFetch &&
         !is_word(attached->place.address + operation.offset, bytes))) {
        return false;
    }
    return carry_out_on(*attached, operation);
}

bool UcxLink::may_go_by_ucx(const Operation& operation) const noexcept {
    if (!is_one_sided(operation.kind) || check(operation) != HANARE_STATUS_OK ||
        operation.bytes() == 0) {
        return false;
    }
    const Rights needed = rights_for(operation.kind);
    if ((operation.capability.rights & needed) != needed) return false;
    return operation.kind != Kind::kFetch || (has_fetch_ops_ && !operation.wakes);
}

// By UCX one could write on and on to shared memory that nobody else has any more.  A link that
// waits for nothing does not see that its peer has gone.
void UcxLink::look_for_the_target() noexcept {
    const uint64_t now = sys::now_ns();
    if (now - looked_ns_.load(std::memory_order_relaxed) < kLook_ns || is_looking_.exchange(true)) {
        return;
    }
    looked_ns_.store(now, std::memory_order_relaxed);
    if (!pulse_ || base_->test(*pulse_)) {
        pulse_.emplace();
        pulse_->kind = Kind::kGet;
        pulse_->capability = card_;
        base_->post(*pulse_);
    }
    is_looking_.store(false);
}

// False: the region is not what it was.  Whether that has been revoked or its task is gone the base
// link finds out, by which nothing is allowed any more (UcxTarget::revoke).
bool UcxLink::carry_out_on(const Attached& attached, Operation& operation) noexcept {
    hanare_status status = check_epoch(operation);
    if (status == HANARE_STATUS_OK) status = apply(attached, operation);
    // What was changed before this look was the memory that the target has.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (status == HANARE_STATUS_OK) status = check_epoch(operation);
    if (endpoint_->is_closed()) may_use_ucx_.store(false);
    if (status == HANARE_STATUS_BAD_KEY) {
        forget(operation.capability);
        return false;
    }
    operation.note_failure(status);
    operation.finish();
    return true;
}

hanare_status UcxLink::check_epoch(const Operation& operation) noexcept {
    const UcxEndpoint::Place place = {card_place_.address + offsetof(UcxCard, epochs) +
                                          operation.capability.region * sizeof(UcxCard::epochs[0]),
                                      card_place_.key};
    const hanare_status status =
        endpoint_->get(place, std::as_writable_bytes(std::span(&epoch_, 1)), operation.deadline_ns);
    if (status != HANARE_STATUS_OK) return status;
    return epoch_ == operation.capability.epoch ? HANARE_STATUS_OK : HANARE_STATUS_BAD_KEY;
}

hanare_status UcxLink::apply(const Attached& attached, Operation& operation) noexcept {
    const UcxEndpoint::Place place = {attached.place.address + operation.offset,
                                      attached.place.key};
    uint64_t before = 0;
    switch (operation.kind) {
        case Kind::kGet: return endpoint_->get(place, operation.destination, operation.deadline_ns);
        case Kind::kFetch: break;
        default:
            // As one store, which a copy need not be.
            if (has_fetch_ops_ && is_word(place.address, operation.source.size())) {
                FetchRequest swap = {.op = FetchOp::kSwap,
                                     .width = static_cast<uint8_t>(operation.source.size())};
                std::memcpy(&swap.operand, operation.source.data(), operation.source.size());
                return endpoint_->fetch(place, swap, before, operation.deadline_ns);
            }
            return endpoint_->put(place, operation.source, operation.deadline_ns);
    }
    const FetchRequest request = {.op = operation.fetch_op,
                                  .width = operation.width,
                                  .operand = operation.operand,
                                  .compare = operation.compare};
    const hanare_status status = endpoint_->fetch(place, request, before, operation.deadline_ns);
    operation.note_value(before);
    return status;
}

// ---- regions

uint64_t UcxLink::place_of(const Capability& capability) noexcept {
    return uint64_t{capability.region} << 32 | capability.rights;
}

const UcxLink::Attached* UcxLink::find(const Capability& capability) const noexcept {
    const auto found = attached_.find(place_of(capability));
    if (found == attached_.end() || !is_same(found->second.capability, capability)) return nullptr;
    return &found->second;
}

bool UcxLink::is_attached(const Capability& capability) noexcept {
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(lock_);
    const Attached* const attached = find(capability);
    return may_use_ucx_.load() && attached != nullptr && attached->place.key != nullptr;
}

// The target has just found that its capability holds.
void UcxLink::attach_for(const Operation& operation) noexcept {
    const Capability& capability = operation.capability;
    if (!is_one_sided(operation.kind) || operation.bytes() == 0 || !may_use_ucx_.load() ||
        refusals_.load() >= kRefusalsMax) {
        return;
    }
    {
        const sys::SignalBlock no_signals;
        const sys::LockGuard guard(lock_);
        if (find(capability) != nullptr) return;
    }
    UcxCard::Entry entry;
    const uint64_t asked_ns = sys::now_ns();
    const uint64_t end_ns = std::min(operation.deadline_ns, asked_ns + kAsking_ns);
    const hanare_status status = ask_for_region(*base_, card_, capability, end_ns, entry);
    if (status != HANARE_STATUS_OK && status != HANARE_STATUS_NOT_FOUND) {
        refusals_.fetch_add(1);
        return;
    }
    refusals_.store(0);
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(lock_);
    // The target has not given back yet what the key is for, whatever has become of that.
    if (sys::now_ns() - asked_ns > UcxContext::kFresh_ns) return;
    remember(capability, status == HANARE_STATUS_OK ? &entry : nullptr);
}

// Null: the region is not memory of UCX.
void UcxLink::remember(const Capability& capability, const UcxCard::Entry* entry) noexcept {
    Attached attached = {.capability = capability, .place = {}};
    if (entry != nullptr) {
        attached.bytes = entry->bytes;
        attached.place = {entry->address,
                          endpoint_->understand(std::span(entry->key).first(entry->key_bytes))};
    }
    try {
        std::swap(attached_[place_of(capability)], attached);
    } catch (const std::bad_alloc&) {
        // Then it goes by the base link.
    }
    // What was there, or what has found no place.
    endpoint_->forget(attached.place.key);
}

void UcxLink::forget(const Capability& capability) noexcept {
    const auto found = attached_.find(place_of(capability));
    if (found == attached_.end()) return;
    endpoint_->forget(found->second.place.key);
    attached_.erase(found);
}

// ---- order

// Under a lock, so that they reach the base link in the order of their numbers.
void UcxLink::post_to_base(Operation& operation) noexcept {
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(order_lock_);
    last_ = &operation;
    ++posted_;
    base_->post(operation);
}

// What the target has answered with OK has taken effect behind all that was posted before.  One
// that is done for another reason, as by its deadline, may have others before it under way.
void UcxLink::note_done(const Operation& operation) noexcept {
    if (operation.status() != HANARE_STATUS_OK) return;
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(order_lock_);
    if (last_ == &operation) settled_ = posted_;
}

bool UcxLink::is_settled() noexcept {
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(order_lock_);
    return settled_ == posted_;
}

}  // namespace hanare::fabric

#endif
