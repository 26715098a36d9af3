// SPDX-License-Identifier: Apache-2.0
#include "job/notice.hpp"

#include <cstddef>

#include "job/word_wait.hpp"
#include "sys/clock.hpp"
#include "sys/lock.hpp"

namespace hanare::job {
namespace {

// Between two attempts to get into a queue, of which nobody says when it has room.
constexpr uint32_t kRetry_us = 500;

// Who has found the message without the bell may have left when that comes.
hanare_status both(hanare_status push, hanare_status bell) noexcept {
    if (push != HANARE_STATUS_OK || bell == HANARE_STATUS_PEER_LOST) return push;
    return bell;
}

bool may_go_later(hanare_status status) noexcept {
    return status == HANARE_STATUS_FULL || status == HANARE_STATUS_BUSY;
}

}  // namespace

Notice::Notice(const Peer::Way& way, To to, std::span<const std::byte> message,
               uint64_t deadline_ns)
    : way_(way),
      to_(to),
      message_(message.begin(), message.end()),
      deadline_ns_(deadline_ns),
      was_lost_(way.link->is_lost()) {
    make(push_, bell_);
    way_.link->post(push_);
    way_.link->post(bell_);
}

Notice::~Notice() {
    if (is_finished_) return;
    way_.link->wait(bell_);
    way_.link->wait(push_);
}

void Notice::make(fabric::Operation& push, fabric::Operation& bell) const {
    const bool is_courier = to_ == To::kCourier;
    push.kind = fabric::Kind::kPush;
    push.capability = is_courier ? way_.control.forwards : way_.control.collectives;
    push.source = message_;
    push.deadline_ns = deadline_ns_;
    bell.kind = fabric::Kind::kFetch;
    bell.capability = way_.control.words;
    bell.offset =
        is_courier ? offsetof(ControlWords, forward_bell) : offsetof(ControlWords, collective_bell);
    bell.width = sizeof(uint32_t);
    bell.operand = 1;
    bell.deadline_ns = deadline_ns_;
    make_waking(bell);
}

hanare_status Notice::finish() {
    way_.link->wait(bell_);
    hanare_status pushed = way_.link->wait(push_);
    hanare_status status = both(pushed, bell_.status());
    is_finished_ = true;
    while (may_go_later(status)) {
        may_arrive_ = false;
        if (sys::now_ns() >= deadline_ns_) return HANARE_STATUS_TIMEOUT;
        sys::yield_for_us(kRetry_us);
        fabric::Operation push;
        fabric::Operation bell;
        make(push, bell);
        way_.link->post(push);
        way_.link->carry_out(bell);
        pushed = way_.link->wait(push);
        status = both(pushed, bell.status());
    }
    may_arrive_ = pushed == HANARE_STATUS_OK || pushed == HANARE_STATUS_TIMEOUT ||
                  (pushed == HANARE_STATUS_PEER_LOST && !was_lost_);
    return status;
}

}  // namespace hanare::job
