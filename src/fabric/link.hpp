// SPDX-License-Identifier: Apache-2.0
//
// Link: the way to one peer, whatever engine carries it.  Operations that are posted to a link take
// effect in this order.  Any thread; async-signal-safe.
#pragma once

#include "fabric/operation.hpp"

namespace hanare::fabric {

class Link {
public:
    virtual ~Link() = default;

    // Starts it and returns; whatever is wrong with it is its status.  Each object once.
    virtual void post(Operation& operation) noexcept = 0;
    // Does what can be done without waiting, and whether the operation is done then.
    virtual bool test(Operation& operation) noexcept = 0;
    // Until it is done, which it is with TIMEOUT when its deadline has passed.
    virtual hanare_status wait(Operation& operation) noexcept = 0;
    // post() and wait(), in less time.
    virtual hanare_status carry_out(Operation& operation) noexcept = 0;
    // Ends all operations, and every later one, with PEER_LOST.
    virtual void end() noexcept = 0;
    virtual bool is_lost() const noexcept = 0;
};

}  // namespace hanare::fabric
