// SPDX-License-Identifier: Apache-2.0
//
// CallHandler: answers what peers ask of this process, in the thread that serves them, and so while
// all others wait: it neither sleeps nor does long work.  A call needs no capability; whoever may
// connect may ask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "hanare/status.h"

namespace hanare::fabric {

class CallHandler {
public:
    virtual ~CallHandler() = default;

    // `caller` is the connection that asks, a number that no other one gets.  The answer goes into
    // `room`, which may be too small for it: OUT_OF_RANGE then.  With another status than OK there
    // is no answer.
    virtual hanare_status answer_call(uint64_t caller, std::span<const std::byte> question,
                                      std::span<std::byte> room, size_t& bytes) noexcept = 0;
    // Asked before the answer goes: another connection that is to be closed first, so that nothing
    // it has sent takes effect any more; 0: none.
    virtual uint64_t next_to_cut_off() noexcept { return 0; }
    // Before its first question: the connection knows the secret of this number (0: the first, or
    // the service has none).  False: there is no memory, and its question is not answered.
    virtual bool caller_came(uint64_t, size_t) noexcept { return true; }
    // The connection has ended.  Whoever has asked nothing is not told of.
    virtual void caller_left(uint64_t caller) noexcept = 0;
};

// What has the connections.
class CallerList {
public:
    virtual void cut_off(uint64_t caller) noexcept = 0;

protected:
    ~CallerList() = default;
};

struct Caller {
    CallHandler* handler = nullptr;
    uint64_t number = 0;
    CallerList* list = nullptr;  // nullptr: nobody is cut off
};

}  // namespace hanare::fabric
