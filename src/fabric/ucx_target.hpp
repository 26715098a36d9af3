// SPDX-License-Identifier: Apache-2.0
//
// UcxTarget: memory of this process that peers reach by UCX, as well as over the base link, on
// which they get the card that says how.  UCX checks nothing: keys, rights and ranges are looked at
// by the sources themselves.  They find errors, and keep nobody out who can read the card.
//
// run() is for a thread of its own; it only connects peers.  The rest is for any ordinary thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "base/result.hpp"
#include "fabric/exposed_regions.hpp"
#include "fabric/ucx_card.hpp"
#include "fabric/ucx_context.hpp"

namespace hanare::fabric {

class UcxTarget {
public:
    // Context and regions live longer.
    static Result<std::unique_ptr<UcxTarget>> open(const UcxContext& context,
                                                   ExposedRegions& regions);
    // After run(); conceals all that it exposes.
    ~UcxTarget();
    UcxTarget(const UcxTarget&) = delete;
    UcxTarget& operator=(const UcxTarget&) = delete;

    // For sources (UcxLink::Settings).
    Capability card() const noexcept { return card_capability_; }

    // As those of ExposedRegions, which do not know of UCX: such regions are exposed, revoked and
    // concealed here.  All of the memory, which stays until then, or until the target's end.
    Result<uint32_t> expose(UcxMemory& memory, Rights rights);
    // What is written to the memory meanwhile, also by way of other regions, may be lost, of these
    // two; after an error the region cannot be reached by UCX any more, but for what had begun.
    Result<void> revoke(uint32_t region);
    Result<void> conceal(uint32_t region);

    // Calls UCX while sources connect, which some transports need; sleeps else.  Until stop().
    void run() noexcept;
    // Any thread.
    void stop() noexcept;

private:
    // A source that takes longer, or ends meanwhile, is not waited for.
    static constexpr uint64_t kConnecting_ns = 10'000'000'000;

    UcxTarget(const UcxContext& context, ExposedRegions& regions) noexcept
        : context_(context), regions_(regions) {}
    Result<void> make_card();
    Result<void> fill_header();
    Result<void> publish(uint32_t region, Rights rights, const UcxMemory& memory);
    void withdraw(uint32_t region) noexcept;
    Result<void> replace(UcxMemory& memory);
    void serve_connecting() noexcept;
    UcxCard& card_page() const noexcept {
        return *reinterpret_cast<UcxCard*>(card_memory_->address());
    }

    struct Region {
        UcxMemory* memory = nullptr;
        Rights rights = 0;
    };

    const UcxContext& context_;
    ExposedRegions& regions_;
    ucp_worker* worker_ = nullptr;  // of run() once that has begun
    std::unique_ptr<UcxMemory> card_memory_;
    uint32_t card_region_ = kRegionsMax;
    Capability card_capability_;
    std::atomic<bool> is_ending_{false};

    std::mutex lock_;  // who exposes, revokes or conceals
    std::map<uint32_t, Region> exposed_;
};

}  // namespace hanare::fabric
