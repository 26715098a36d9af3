// SPDX-License-Identifier: Apache-2.0
//
// Collectives: what tasks tell each other in broadcasts and allgathers.
#include <bit>
#include <cstring>
#include <memory>
#include <utility>

#include "fabric/fifo.hpp"
#include "job/collectives.hpp"
#include "job/notice.hpp"
#include "sys/clock.hpp"

namespace hanare::job {
namespace {

// Acknowledging what was given up here.
constexpr uint64_t kStale_ns = 1000 * kNsPerMs;
// Telling those below of a failure, which may be that the time limit has passed.
constexpr uint64_t kFailure_ns = 1000 * kNsPerMs;

}  // namespace

// ---- being told

// What the parent says about this collective.
Failure Collectives::take(Kind kind, uint32_t parent, uint64_t bytes, uint64_t deadline_ns,
                          Received& told) {
    const Failure failure =
        lookout_.wait({.word = communicator_.control().words().collective_bell,
                       .has_come = [&] { return listen(), early_.contains(number_); },
                       .awaited = [&](std::vector<uint32_t>& ranks) { ranks.push_back(parent); },
                       .deadline_ns = deadline_ns});
    if (!failure.is_none()) return failure;
    told = std::move(early_.extract(number_).mapped());
    const Message& head = told.head;
    if (head.parent == parent && head.kind == Kind::kFailed) {
        const Failure failed = Failure::of(head.bytes);
        return failed.is_none() ? Failure{HANARE_STATUS_CORRUPT, parent} : failed;
    }
    if (head.parent != parent || head.slot >= ControlWords::kSlots || head.index >= kArity) {
        stale_.push_back(head);
        return {HANARE_STATUS_CORRUPT, parent};
    }
    if (head.kind == kind && head.bytes == bytes) return {};
    // The tasks do not call the same.
    const Failure differs = {HANARE_STATUS_INVALID_ARGUMENT, communicator_.rank()};
    acknowledge(head, differs, deadline_ns);
    return differs;
}

// Takes what has come, and answers what is about collectives that are over.
void Collectives::listen() {
    drain();
    std::erase_if(early_, [this](const auto& entry) {
        if (!is_over(entry.first)) return false;
        stale_.push_back(entry.second.head);
        return true;
    });
    if (!stale_.empty()) answer_stale();
}

void Collectives::drain() {
    fabric::Fifo queue(communicator_.control().collectives());
    if (queue.is_empty()) return;
    std::byte room[fabric::kMessageBytesMax];
    for (;;) {
        size_t bytes = 0;
        const hanare_status status = queue.pop(room, bytes);
        // Longer than what any of us sends; BUSY: the bell rings again, or the next look finds it.
        if (status != HANARE_STATUS_OK) return;
        keep(std::span(room).first(bytes));
    }
}

void Collectives::keep(std::span<const std::byte> message) {
    Received received;
    if (message.size() < sizeof received.head) return;
    std::memcpy(&received.head, message.data(), sizeof received.head);
    const auto data = message.subspan(sizeof received.head);
    received.data.assign(data.begin(), data.end());
    const Message head = received.head;
    // Of two the first stands: a parent that has failed may have told the task before.
    if (!is_over(head.number) && early_.try_emplace(head.number, std::move(received)).second) {
        return;
    }
    stale_.push_back(head);
}

// Told too late, about what this task has given up: who told it may still wait, and keeps a slot
// for the acknowledgement; but for failures, which want none.
void Collectives::answer_stale() {
    for (const Message& head : std::exchange(stale_, {})) {
        if (head.slot >= ControlWords::kSlots || head.index >= kArity) continue;
        Failure failure = {HANARE_STATUS_TIMEOUT, communicator_.rank()};
        if (const auto known = failed_.find(head.number); known != failed_.end()) {
            failure = known->second;
        }
        acknowledge(head, failure, sys::now_ns() + kStale_ns);
    }
}

Failure Collectives::acknowledge(const Message& message, const Failure& failure,
                                 uint64_t deadline_ns) {
    const auto way = communicator_.way_to(message.parent, deadline_ns);
    if (!way) return Failure::of(way.error(), message.parent);
    Acknowledgement acknowledgement(
        **way, {.rank = message.parent, .slot = message.slot, .index = message.index}, failure,
        deadline_ns);
    const hanare_status status = acknowledgement.finish();
    // Once it knows, it may leave.
    if (status == HANARE_STATUS_PEER_LOST) return {};
    return {status, message.parent};
}

// ---- telling

Collectives::Family::~Family() {
    if (region) {
        static_cast<void>(self.communicator_.exposures().regions().conceal(*region));
    }
    if (slot) self.slots_.give_back(*slot, expected);
}

AcknowledgementSlot& Collectives::Family::words() const {
    return self.communicator_.control().words().slots[*slot];
}

Failure Collectives::pass_on(Family& family, Kind kind, std::span<std::byte> data, uint64_t bytes) {
    Failure failure = tell(family, kind, data, bytes);
    // Who was told has what it needs as long as this waits; of a loss all are told.
    if (failure.status == HANARE_STATUS_PEER_LOST || !family.slot) return failure;
    const Failure awaited = await(family);
    failure.note(awaited.status, awaited.rank);
    return failure;
}

// Tells the children where the data is, or where it belongs; those to whom that cannot be told,
// that it does not come.
Failure Collectives::tell(Family& family, Kind kind, std::span<std::byte> data, uint64_t bytes) {
    Message head = {.number = number_,
                    .kind = kind,
                    .parent = communicator_.rank(),
                    .slot = kNoSlot,
                    .bytes = bytes,
                    .key = {}};
    Failure failure = prepare(family, head, data);
    std::vector<std::unique_ptr<Notice>> notices;
    for (uint32_t index = 0; index < family.place.children.size() && failure.is_none(); ++index) {
        const uint32_t child = family.place.children[index].rank;
        const auto way = communicator_.way_to(child, family.deadline_ns);
        if (!way) {
            failure = Failure::of(way.error(), child);
            break;
        }
        head.index = index;
        std::vector<std::byte> message(sizeof head + (head.is_inline != 0 ? data.size() : 0));
        std::memcpy(message.data(), &head, sizeof head);
        if (head.is_inline != 0 && !data.empty()) {
            std::memcpy(message.data() + sizeof head, data.data(), data.size());
        }
        family.expected |= 1u << index;
        notices.push_back(
            std::make_unique<Notice>(**way, Notice::To::kCaller, message, family.deadline_ns));
    }
    std::vector<Tree::Child> untold;
    for (uint32_t index = 0; index < family.place.children.size(); ++index) {
        const Tree::Child& child = family.place.children[index];
        if (index < notices.size()) {
            const hanare_status told = notices[index]->finish();
            failure.note(told, child.rank);
            if (!notices[index]->may_arrive()) family.expected &= ~(1u << index);
            if (told == HANARE_STATUS_OK) continue;
        }
        untold.push_back(child);
    }
    tell_failure(untold, failure);
    return failure;
}

// The slot, and the data's place where it does not go with the message.
Failure Collectives::prepare(Family& family, Message& head, std::span<std::byte> data) {
    const uint32_t own = communicator_.rank();
    const auto slot = slots_.take();
    if (!slot) return Failure::of(slot.error(), own);
    family.slot = *slot;
    head.slot = *slot;
    head.is_inline = head.kind == Kind::kBroadcast && data.size() <= kInlineBytesMax ? 1 : 0;
    if (head.is_inline != 0 || data.empty()) return {};
    auto& regions = communicator_.exposures().regions();
    const fabric::Rights rights = head.kind == Kind::kBroadcast ? fabric::kRead : fabric::kWrite;
    const auto region = regions.expose(data, rights);
    if (!region) return Failure::of(region.error(), own);
    family.region = *region;
    head.key = regions.capability(*region, rights).value();
    return {};
}

// Who is not there waits for nothing, and finds out by itself.
void Collectives::tell_failure(std::span<const Tree::Child> children, const Failure& failure) {
    // Of a loss all are told otherwise.
    if (children.empty() || failure.status == HANARE_STATUS_PEER_LOST) return;
    const Message head = {.number = number_,
                          .kind = Kind::kFailed,
                          .parent = communicator_.rank(),
                          .slot = kNoSlot,
                          .bytes = failure.word(),
                          .key = {}};
    const uint64_t deadline_ns = sys::now_ns() + kFailure_ns;
    std::vector<std::unique_ptr<Notice>> notices;
    for (const Tree::Child& child : children) {
        const auto way = communicator_.way_to(child.rank, deadline_ns);
        if (!way) continue;
        notices.push_back(std::make_unique<Notice>(**way, Notice::To::kCaller,
                                                   std::as_bytes(std::span(&head, 1)),
                                                   sys::now_ns() + kFailure_ns));
    }
    for (const auto& notice : notices) notice->finish();
}

Failure Collectives::await(Family& family) {
    std::atomic<uint32_t>& bits = family.words().bits;
    const auto missing = [&] { return family.expected & ~bits.load(std::memory_order_acquire); };
    const Failure failure =
        lookout_.wait({.word = bits,
                       .has_come = [&] { return listen(), missing() == 0; },
                       .awaited =
                           [&](std::vector<uint32_t>& ranks) {
                               for (uint32_t left = missing(); left != 0; left &= left - 1) {
                                   const auto index = static_cast<size_t>(std::countr_zero(left));
                                   ranks.push_back(family.place.children[index].rank);
                               }
                           },
                       .deadline_ns = family.deadline_ns});
    if (!failure.is_none()) return failure;
    return Failure::of(family.words().failure.load());
}

}  // namespace hanare::job
