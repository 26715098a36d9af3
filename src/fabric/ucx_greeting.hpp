// SPDX-License-Identifier: Apache-2.0
//
// How a source comes to reach a target by UCX: over the link that it has, by the target's card.  By
// ordinary threads; nothing here believes that operations of UCX are one-sided before it has seen
// it.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "fabric/capability.hpp"
#include "fabric/link.hpp"
#include "fabric/ucx_card.hpp"
#include "fabric/ucx_endpoint.hpp"

namespace hanare::fabric {

struct UcxConnection {
    std::unique_ptr<UcxEndpoint> endpoint;
    UcxEndpoint::Place card;
    bool has_fetch_ops = false;  // which are one-sided, and atomic with the processors'
};

// NOT_SUPPORTED: no way there, or one on which puts or gets are done by the target's software;
// CORRUPT: what is no card, or one of another version; and what the base link says.
Result<UcxConnection> connect_by_ucx(const UcxContext& context, Link& base, const Capability& card,
                                     int timeout_ms);

// OK; NOT_FOUND: the region, as the capability has it, is not memory of UCX; CORRUPT: it is being
// changed; and what the base link says.
hanare_status ask_for_region(Link& base, const Capability& card, const Capability& capability,
                             uint64_t deadline_ns, UcxCard::Entry& entry) noexcept;

}  // namespace hanare::fabric
