// SPDX-License-Identifier: Apache-2.0
#include "job/courier.hpp"

#include <algorithm>
#include <cstring>

#include "fabric/fifo.hpp"
#include "sys/clock.hpp"
#include "sys/signal.hpp"

namespace hanare::job {
namespace {

constexpr uint64_t kLook_ns = 50 * kNsPerMs;
// An acknowledgement is told even when the deadline has passed.
constexpr uint64_t kAcknowledge_ns = 1000 * kNsPerMs;

}  // namespace

// With signals blocked: it reads exposed memory.
Courier::Courier(Communicator& communicator, SlotTable& slots, Lookout& lookout, Windows& windows)
    : communicator_(communicator), slots_(slots), lookout_(lookout), windows_(windows) {
    const sys::SignalBlock no_signals;
    thread_ = std::thread([this] { run(); });
}

Courier::~Courier() {
    is_ending_.store(true);
    std::atomic<uint32_t>& bell = communicator_.control().words().forward_bell;
    bell.fetch_add(1);
    wake_waiters(bell);
    thread_.join();
}

void Courier::run() {
    const std::atomic<uint32_t>& bell = communicator_.control().words().forward_bell;
    while (!is_ending_.load()) {
        const uint32_t seen = bell.load(std::memory_order_acquire);
        const bool was_told = take_one();
        look_after();
        if (was_told || is_ending_.load()) continue;
        const uint64_t until_ns = pending_.empty() ? kNoDeadline : sys::now_ns() + kLook_ns;
        wait_for_change(bell, seen, until_ns, Changes::kWaking);
    }
}

bool Courier::take_one() {
    std::byte room[fabric::kMessageBytesMax];
    size_t bytes = 0;
    const hanare_status status = fabric::Fifo(communicator_.control().forwards()).pop(room, bytes);
    if (status == HANARE_STATUS_BUSY) return true;
    if (status != HANARE_STATUS_OK) return false;
    Forward forward;
    // Anything else is nonsense, which nobody waits for.
    if (bytes != sizeof forward) return true;
    std::memcpy(&forward, room, sizeof forward);
    const bool has_sense =
        forward.parent < communicator_.size() && forward.root < communicator_.size() &&
        forward.arity != 0 && forward.arity <= Distribution::kArityMax &&
        forward.slot < ControlWords::kSlots && forward.index < Distribution::kArityMax;
    if (has_sense) accept(forward);
    return true;
}

void Courier::accept(const Forward& forward) {
    const AcknowledgementPlace place = {.rank = forward.parent,
                                        .slot = forward.slot,
                                        .index = forward.index,
                                        .is_for_courier = forward.is_for_courier != 0};
    const uint32_t own = communicator_.rank();
    const uint64_t deadline_ns = forward.timeout_ms == UINT32_MAX
                                     ? kNoDeadline
                                     : sys::now_ns() + forward.timeout_ms * kNsPerMs;
    Windows::Use window = windows_.use(forward.window);
    const Failure failure =
        window == nullptr ? Failure{HANARE_STATUS_NOT_FOUND, own} : check(forward, *window);
    if (!failure.is_none()) return acknowledge(place, failure, deadline_ns);
    const Tree::Place where = Tree(communicator_.size(), forward.arity, forward.root).place_of(own);
    const auto data = window->memory.subspan(forward.offset, forward.bytes);
    auto distribution =
        std::make_unique<Distribution>(communicator_, slots_,
                                       Distribution::Plan{.window = std::move(window),
                                                          .root = forward.root,
                                                          .arity = forward.arity,
                                                          .offset = forward.offset,
                                                          .data = data,
                                                          .deadline_ns = deadline_ns,
                                                          .is_for_courier = true},
                                       where.children);
    distribution->send();
    if (pending_.empty()) ask_ns_ = sys::now_ns() + Lookout::kPatience_ns;
    pending_.push_back({place, std::move(distribution)});
}

// What the put was allowed by, which came before: keys that hold now held then.
Failure Courier::check(const Forward& forward, const Window& window) const {
    const uint32_t own = communicator_.rank();
    fabric::ExposedRegions::Access access;
    const hanare_status status = communicator_.exposures().regions().enter(
        window.keys[own], fabric::kWrite, forward.offset, forward.bytes, access);
    return {status, own};
}

void Courier::look_after() {
    const bool asks = !pending_.empty() && sys::now_ns() >= ask_ns_;
    for (Pending& pending : pending_) {
        Distribution& distribution = *pending.distribution;
        if (!distribution.is_over() && sys::now_ns() >= distribution.plan().deadline_ns) {
            distribution.give_up_all(HANARE_STATUS_TIMEOUT);
        }
        if (!distribution.is_over() && asks) ask_after(pending);
        if (!distribution.is_over()) continue;
        acknowledge(pending.place, distribution.failure(), distribution.plan().deadline_ns);
        pending.distribution.reset();
    }
    if (asks) ask_ns_ = sys::now_ns() + Lookout::kPatience_ns;
    std::erase_if(pending_, [](const Pending& each) { return each.distribution == nullptr; });
}

void Courier::ask_after(Pending& pending) {
    std::vector<uint32_t> awaited;
    pending.distribution->awaited(awaited);
    for (const uint32_t rank : awaited) {
        if (is_ending_.load()) return;
        if (lookout_.is_lost(rank)) pending.distribution->give_up(rank, HANARE_STATUS_PEER_LOST);
    }
}

void Courier::acknowledge(const AcknowledgementPlace& place, const Failure& failure,
                          uint64_t deadline_ns) {
    const uint64_t until_ns = std::max(deadline_ns, sys::now_ns() + kAcknowledge_ns);
    // Who does not get it will find out why.
    const auto way = communicator_.way_to(place.rank, until_ns);
    if (!way) return;
    Acknowledgement acknowledgement(**way, place, failure, until_ns);
    acknowledgement.finish();
}

}  // namespace hanare::job
