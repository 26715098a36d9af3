// SPDX-License-Identifier: Apache-2.0
//
// UcxSide: what a task has of UCX, which is optional (decision 29): memory that others reach by it,
// and its part of the links to theirs.  Any ordinary thread; not across fork().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "fabric/exposed_regions.hpp"
#include "fabric/link.hpp"
#include "fabric/ucx_context.hpp"

namespace hanare::job {

class UcxSide {
public:
    // Whether there can be one: NOT_SUPPORTED, SYSTEM.
    static Result<void> try_here();
    // The regions live longer.  Starts a thread, which connects others.
    static Result<std::unique_ptr<UcxSide>> open(fabric::ExposedRegions& regions);
    virtual ~UcxSide() = default;
    UcxSide(const UcxSide&) = delete;
    UcxSide& operator=(const UcxSide&) = delete;

    // For others' extend().
    virtual fabric::Capability card() const noexcept = 0;

    // Nothing is exposed any more.
    virtual void end() noexcept = 0;

    // Zeros; ends before this does.
    virtual Result<std::unique_ptr<fabric::UcxMemory>> allocate(size_t bytes) = 0;
    // As those of ExposedRegions.  The memory stays until it is concealed, or until end(); after an
    // error of revoke() it can be reached by the region, but not by UCX any more.  What is written
    // meanwhile, also by way of other regions, may be lost, with conceal(), too.
    virtual Result<uint32_t> expose(fabric::UcxMemory& memory, fabric::Rights rights) = 0;
    virtual Result<void> revoke(uint32_t region) = 0;
    virtual Result<void> conceal(uint32_t region) = 0;

    // A link by UCX where the task with that card can be reached so without its taking part, else
    // the link itself.
    virtual std::unique_ptr<fabric::Link> extend(std::unique_ptr<fabric::Link> base,
                                                 const fabric::Capability& card,
                                                 int timeout_ms) = 0;

protected:
    UcxSide() = default;
};

}  // namespace hanare::job
