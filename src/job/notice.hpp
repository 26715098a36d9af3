// SPDX-License-Identifier: Apache-2.0
//
// Notice: a message to a queue of another task's control memory, and the bell that wakes who reads
// it.  Takes effect after what was posted on the link before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "job/peer.hpp"

namespace hanare::job {

class Notice {
public:
    enum class To { kCourier, kCaller };
    // Begins it.  The link outlives it; the message is copied.
    Notice(const Peer::Way& way, To to, std::span<const std::byte> message, uint64_t deadline_ns);
    ~Notice();
    Notice(const Notice&) = delete;
    Notice& operator=(const Notice&) = delete;

    // Until it has arrived, also in a queue that is full at first.
    hanare_status finish();
    // Once it is finished: whether it has arrived, or still may, or may have before a task was
    // lost.
    bool may_arrive() const noexcept { return may_arrive_; }

private:
    void make(fabric::Operation& push, fabric::Operation& bell) const;

    const Peer::Way& way_;
    const To to_;
    const std::vector<std::byte> message_;
    const uint64_t deadline_ns_;
    const bool was_lost_;  // the link, before
    fabric::Operation push_;
    fabric::Operation bell_;
    bool is_finished_ = false;
    bool may_arrive_ = true;
};

}  // namespace hanare::job
