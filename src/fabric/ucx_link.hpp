// SPDX-License-Identifier: Apache-2.0
//
// UcxLink: operations on a peer's memory by UCX where UCX does them without the target, and by
// another link, the base, where it does not: on memory that is not UCX's (UcxTarget), queues,
// signals, fetch-ops that wake, whatever is wrong with an operation, the first ones on a region,
// and what comes while operations on the base link may be under way, so that the order is kept.
// What UCX carries out is done when post() returns.  Should UCX fail, all goes by the base link.
//
// Keys are checked by the target when a region is first used; then UCX checks none.  Rights, range
// and the epoch are looked at here, the epoch in the target's memory, before and after: an
// operation never says OK for what went into memory that had been taken away.
//
// After TIMEOUT of a get UCX may still write to its destination where a transport does not let go
// at once, as shared memory does; the memory has to stay until the link has ended then.
//
// Any thread, but not in handlers of signals and faults: UCX allocates and takes locks.  Not across
// fork().
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "base/result.hpp"
#include "base/thread_annotations.hpp"
#include "fabric/link.hpp"
#include "fabric/ucx_greeting.hpp"
#include "sys/lock.hpp"

namespace hanare::fabric {

class UcxLink : public Link {
public:
    struct Settings {
        Capability card;          // UcxTarget::card() of the target
        int timeout_ms = 30'000;  // of connecting
    };
    // Takes the base link if it succeeds, and leaves it otherwise: NOT_SUPPORTED, when UCX has no
    // way there on which operations are one-sided, and as connect_by_ucx().  That the target is
    // dead is learned from the base link, which is asked every 10 ms.
    static Result<std::unique_ptr<UcxLink>> connect(const UcxContext& context,
                                                    std::unique_ptr<Link>& base,
                                                    const Settings& settings);
    ~UcxLink() override;
    UcxLink(const UcxLink&) = delete;
    UcxLink& operator=(const UcxLink&) = delete;

    void post(Operation& operation) noexcept override;
    bool test(Operation& operation) noexcept override;
    hanare_status wait(Operation& operation) noexcept override;
    hanare_status carry_out(Operation& operation) noexcept override;
    void end() noexcept override;
    bool is_lost() const noexcept override { return base_->is_lost(); }

    // Whether operations with that capability go by UCX.
    bool is_attached(const Capability& capability) noexcept;
    // Whether fetch-ops can.
    bool has_fetch_ops() const noexcept { return has_fetch_ops_; }

private:
    // What is known of a capability.
    struct Attached {
        Capability capability;
        UcxEndpoint::Place place;  // without a key: not memory of UCX
        uint64_t bytes = 0;
    };
    UcxLink(std::unique_ptr<Link> base, UcxConnection connection, const Capability& card) noexcept;

    bool try_by_ucx(Operation& operation) noexcept;
    bool may_go_by_ucx(const Operation& operation) const noexcept;
    void look_for_the_target() noexcept;
    bool carry_out_on(const Attached& attached, Operation& operation) noexcept
        HANARE_REQUIRES(lock_);
    hanare_status apply(const Attached& attached, Operation& operation) noexcept
        HANARE_REQUIRES(lock_);
    hanare_status check_epoch(const Operation& operation) noexcept HANARE_REQUIRES(lock_);

    static uint64_t place_of(const Capability& capability) noexcept;
    const Attached* find(const Capability& capability) const noexcept HANARE_REQUIRES(lock_);
    void attach_for(const Operation& operation) noexcept;
    void remember(const Capability& capability, const UcxCard::Entry* entry) noexcept
        HANARE_REQUIRES(lock_);
    void forget(const Capability& capability) noexcept HANARE_REQUIRES(lock_);

    void post_to_base(Operation& operation) noexcept;
    void note_done(const Operation& operation) noexcept;
    bool is_settled() noexcept;

    const std::unique_ptr<Link> base_;
    const Capability card_;
    const UcxEndpoint::Place card_place_;
    const bool has_fetch_ops_;
    std::atomic<bool> may_use_ucx_{true};
    std::atomic<uint32_t> refusals_{0};   // in a row, by the card
    std::atomic<uint64_t> looked_ns_{0};  // whether the target is there
    std::atomic<bool> is_looking_{false};
    std::optional<Operation> pulse_;  // of who is looking; moves nothing

    // Operations on the base link: how many, the last one, and how many are known to be over.
    sys::RankedLock order_lock_{sys::LockRank::kLinkOrder};
    uint64_t posted_ HANARE_GUARDED_BY(order_lock_) = 0;
    uint64_t settled_ HANARE_GUARDED_BY(order_lock_) = 0;
    const Operation* last_ HANARE_GUARDED_BY(order_lock_) = nullptr;

    sys::RankedLock lock_{sys::LockRank::kLinkSend};  // UCX
    std::unique_ptr<UcxEndpoint> endpoint_ HANARE_GUARDED_BY(lock_);
    std::map<uint64_t, Attached> attached_ HANARE_GUARDED_BY(lock_);
    uint32_t epoch_ HANARE_GUARDED_BY(lock_) = 0;  // for UCX to put one into
};

}  // namespace hanare::fabric
