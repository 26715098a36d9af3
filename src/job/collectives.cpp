// SPDX-License-Identifier: Apache-2.0
#include "job/collectives.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "fabric/fifo.hpp"
#include "job/notice.hpp"
#include "sys/clock.hpp"

namespace hanare::job {
namespace {

// Telling others that a task is lost.
constexpr uint64_t kSpread_ns = 1000 * kNsPerMs;
// Acknowledging what was given up here.
constexpr uint64_t kStale_ns = 1000 * kNsPerMs;

uint32_t rounds_for(uint32_t tasks) noexcept { return std::bit_width(tasks - 1); }

// Its port may be another's now.
bool has_left(hanare_status status) noexcept {
    return status == HANARE_STATUS_PEER_LOST || status == HANARE_STATUS_BAD_KEY;
}

Failure failure_of(const Error& error, uint32_t rank) noexcept { return {error.status, rank}; }

}  // namespace

// Exposed as long as it lives, where children get or put it; and the slot of their
// acknowledgements.
struct Collectives::Family {
    Family(Collectives& owner, const Tree::Place& where, uint64_t deadline)
        : self(owner), place(where), deadline_ns(deadline) {}
    ~Family() {
        if (region) {
            static_cast<void>(self.communicator_.exposures().regions().conceal(*region));
        }
        if (slot) self.slots_.give_back(*slot, expected);
    }
    Family(const Family&) = delete;
    Family& operator=(const Family&) = delete;

    std::atomic<uint32_t>& bits() const { return words().bits; }
    AcknowledgementSlot& words() const { return self.communicator_.control().words().slots[*slot]; }

    Collectives& self;
    const Tree::Place& place;
    const uint64_t deadline_ns;
    std::optional<uint32_t> region;
    std::optional<uint32_t> slot;
    uint32_t expected = 0;
};

// ---- barrier

Result<void> Collectives::barrier(uint64_t deadline_ns) {
    HANARE_TRY(communicator_.check_process());
    const std::unique_lock guard(lock_, std::try_to_lock);
    if (!guard) return fail(HANARE_STATUS_BUSY, "another thread is in a collective operation");
    Failure failure = known_loss();
    if (failure.is_none()) failure = pass_barrier(deadline_ns);
    return outcome("barrier", failure);
}

// Dissemination: in round k everybody tells who is 2^k behind, and is told by who is 2^k before.
Failure Collectives::pass_barrier(uint64_t deadline_ns) {
    if (!round_) {
        round_ = 0;
        ++barrier_;
    }
    for (; *round_ < rounds_for(communicator_.size()); ++*round_) {
        const Failure failure = pass_round(*round_, deadline_ns);
        if (!failure.is_none()) return failure;
    }
    round_.reset();
    return {};
}

// That the other cannot be told any more says nothing: it may have left because all have come.  If
// it has not come, those who wait for it will notice.
Failure Collectives::pass_round(uint32_t round, uint64_t deadline_ns) {
    const uint32_t size = communicator_.size();
    const uint32_t own = communicator_.rank();
    const uint32_t distance = 1u << round;
    const uint32_t to = (own + distance) % size;
    const uint32_t from = (own + size - distance) % size;

    const auto way = communicator_.way_to(to, deadline_ns);
    if (!way && way.error().status != HANARE_STATUS_PEER_LOST) return failure_of(way.error(), to);
    fabric::Operation arrival;
    arrival.kind = fabric::Kind::kFetch;
    // A swap, so that it may happen twice.
    arrival.fetch_op = fabric::FetchOp::kSwap;
    arrival.width = sizeof(uint32_t);
    arrival.offset = offsetof(ControlWords, barrier) + uint64_t{round} * sizeof(uint32_t);
    arrival.operand = barrier_;
    arrival.deadline_ns = deadline_ns;
    if (way) {
        make_waking(arrival);
        arrival.capability = (*way)->control.words;
        (*way)->link->post(arrival);
    }
    std::atomic<uint32_t>& word = communicator_.control().words().barrier[round];
    const Failure failure = lookout_.wait(
        {.word = word,
         .has_come = [&] { return static_cast<int32_t>(word.load() - barrier_) >= 0; },
         .awaited = [&](std::vector<uint32_t>& ranks) { ranks.push_back(from); },
         .deadline_ns = deadline_ns});
    const hanare_status told = way ? (*way)->link->wait(arrival) : HANARE_STATUS_OK;
    if (!failure.is_none()) return failure;
    // What was not sent in time never will be: the round has to be passed again, or the other
    // hangs.
    if (told == HANARE_STATUS_OK || has_left(told)) return {};
    return {told, to};
}

// ---- broadcast

Result<void> Collectives::broadcast(std::span<std::byte> data, uint32_t root,
                                    uint64_t deadline_ns) {
    HANARE_TRY(communicator_.check_rank(root));
    const std::unique_lock guard(lock_, std::try_to_lock);
    if (!guard) return fail(HANARE_STATUS_BUSY, "another thread is in a collective operation");
    ++number_;
    Failure failure = known_loss();
    if (failure.is_none()) failure = broadcast_now(data, root, deadline_ns);
    return outcome("broadcast", failure);
}

Failure Collectives::broadcast_now(std::span<std::byte> data, uint32_t root, uint64_t deadline_ns) {
    const Tree::Place place =
        Tree(communicator_.size(), kArity, root).place_of(communicator_.rank());
    if (place.parent) {
        Received told;
        Failure failure = take(Kind::kBroadcast, *place.parent, data.size(), deadline_ns, told);
        if (!failure.is_none()) return failure;
        failure = receive(told, data, deadline_ns);
        const Failure told_parent = acknowledge(told.head, failure, deadline_ns);
        if (!failure.is_none()) return failure;
        if (!told_parent.is_none()) return told_parent;
    }
    if (place.children.empty()) return {};
    Family family(*this, place, deadline_ns);
    Failure failure = tell(family, Kind::kBroadcast, data, data.size());
    if (failure.is_none()) failure = await(family);
    return failure;
}

Failure Collectives::receive(const Received& told, std::span<std::byte> data,
                             uint64_t deadline_ns) {
    if (told.head.is_inline != 0) {
        if (told.data.size() != data.size()) return {HANARE_STATUS_CORRUPT, told.head.parent};
        if (!data.empty()) std::memcpy(data.data(), told.data.data(), data.size());
        return {};
    }
    fabric::Operation get;
    get.kind = fabric::Kind::kGet;
    get.capability = told.head.key;
    get.destination = data;
    get.deadline_ns = deadline_ns;
    const auto got = communicator_.carry_out(told.head.parent, get);
    return got ? Failure{} : failure_of(got.error(), told.head.parent);
}

// ---- allgather

Result<uint32_t> Collectives::allgather(std::span<const std::byte> own, std::span<std::byte> all,
                                        uint64_t deadline_ns) {
    HANARE_TRY(communicator_.check_process());
    const uint32_t size = communicator_.size();
    if (all.size() / size != own.size() || all.size() % size != 0) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "allgather of %zu bytes from %u tasks into %zu bytes", own.size(), size,
                    all.size());
    }
    const std::unique_lock guard(lock_, std::try_to_lock);
    if (!guard) return fail(HANARE_STATUS_BUSY, "another thread is in a collective operation");
    if (!own.empty()) {
        std::memmove(all.data() + communicator_.rank() * own.size(), own.data(), own.size());
    }
    ++number_;
    Failure failure = known_loss();
    if (failure.is_none()) failure = gather_now(all, own.size(), deadline_ns);
    ++number_;
    if (failure.is_none()) failure = broadcast_now(all, 0, deadline_ns);
    HANARE_TRY(outcome("allgather", failure));
    return number_;
}

// Up the tree of task 0, in which each leads a run of ranks: what it has then is a range of `all`.
Failure Collectives::gather_now(std::span<std::byte> all, size_t own_bytes, uint64_t deadline_ns) {
    const Tree::Place place = Tree(communicator_.size(), kArity, 0).place_of(communicator_.rank());
    Failure failure;
    if (!place.children.empty()) {
        Family family(*this, place, deadline_ns);
        failure = tell(family, Kind::kGather, all, own_bytes);
        if (failure.is_none()) failure = await(family);
    }
    if (!place.parent) return failure;
    Received told;
    const Failure not_told = take(Kind::kGather, *place.parent, own_bytes, deadline_ns, told);
    if (!not_told.is_none()) return failure.is_none() ? not_told : failure;
    if (failure.is_none()) failure = give_up_to(told, all, place, own_bytes, deadline_ns);
    const Failure told_parent = acknowledge(told.head, failure, deadline_ns);
    return failure.is_none() ? told_parent : failure;
}

Failure Collectives::give_up_to(const Received& told, std::span<std::byte> all,
                                const Tree::Place& place, size_t own_bytes, uint64_t deadline_ns) {
    fabric::Operation put;
    put.kind = fabric::Kind::kPut;
    put.capability = told.head.key;
    put.offset = uint64_t{communicator_.rank()} * own_bytes;
    put.source = all.subspan(put.offset, place.tasks * own_bytes);
    put.deadline_ns = deadline_ns;
    const auto done = communicator_.carry_out(told.head.parent, put);
    return done ? Failure{} : failure_of(done.error(), told.head.parent);
}

// ---- being told

// What the parent says about this collective.
Failure Collectives::take(Kind kind, uint32_t parent, uint64_t bytes, uint64_t deadline_ns,
                          Received& told) {
    std::erase_if(early_, [this](const auto& entry) {
        if (!is_over(entry.first)) return false;
        stale_.push_back(entry.second.head);
        return true;
    });
    const Failure failure = lookout_.wait(
        {.word = communicator_.control().words().collective_bell,
         .has_come = [&] { return drain(), answer_stale(), early_.contains(number_); },
         .awaited = [&](std::vector<uint32_t>& ranks) { ranks.push_back(parent); },
         .deadline_ns = deadline_ns});
    if (!failure.is_none()) return failure;
    told = std::move(early_.extract(number_).mapped());
    const Message& head = told.head;
    if (head.parent != parent || head.slot >= ControlWords::kSlots || head.index >= kArity) {
        return {HANARE_STATUS_CORRUPT, parent};
    }
    if (head.kind == kind && head.bytes == bytes) return {};
    // The tasks do not call the same.
    const Failure differs = {HANARE_STATUS_INVALID_ARGUMENT, communicator_.rank()};
    acknowledge(head, differs, deadline_ns);
    return differs;
}

void Collectives::drain() {
    fabric::Fifo queue(communicator_.control().collectives());
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
    const uint32_t number = received.head.number;
    if (is_over(number)) return stale_.push_back(received.head);
    early_[number] = std::move(received);
}

// Told too late, about what this task has given up: who told it may still wait, and keeps a slot
// for the acknowledgement.
void Collectives::answer_stale() {
    for (const Message& head : std::exchange(stale_, {})) {
        if (head.slot >= ControlWords::kSlots || head.index >= kArity) continue;
        acknowledge(head, {HANARE_STATUS_TIMEOUT, communicator_.rank()}, sys::now_ns() + kStale_ns);
    }
}

Failure Collectives::acknowledge(const Message& message, const Failure& failure,
                                 uint64_t deadline_ns) {
    const auto way = communicator_.way_to(message.parent, deadline_ns);
    if (!way) return failure_of(way.error(), message.parent);
    Acknowledgement acknowledgement(
        **way, {.rank = message.parent, .slot = message.slot, .index = message.index}, failure,
        deadline_ns);
    const hanare_status status = acknowledgement.finish();
    // Once it knows, it may leave.
    if (status == HANARE_STATUS_PEER_LOST) return {};
    return {status, message.parent};
}

// ---- telling

// Tells the children where the data is, or where it belongs.
Failure Collectives::tell(Family& family, Kind kind, std::span<std::byte> data, uint64_t bytes) {
    const uint32_t own = communicator_.rank();
    const auto slot = slots_.take();
    if (!slot) return failure_of(slot.error(), own);
    family.slot = *slot;
    Message head = {
        .number = number_, .kind = kind, .parent = own, .slot = *slot, .bytes = bytes, .key = {}};
    head.is_inline = kind == Kind::kBroadcast && data.size() <= kInlineBytesMax ? 1 : 0;
    if (head.is_inline == 0 && !data.empty()) {
        auto& regions = communicator_.exposures().regions();
        const fabric::Rights rights = kind == Kind::kBroadcast ? fabric::kRead : fabric::kWrite;
        const auto region = regions.expose(data, rights);
        if (!region) return failure_of(region.error(), own);
        family.region = *region;
        head.key = regions.capability(*region, rights).value();
    }
    std::vector<std::unique_ptr<Notice>> notices;
    for (uint32_t index = 0; index < family.place.children.size(); ++index) {
        const uint32_t child = family.place.children[index].rank;
        const auto way = communicator_.way_to(child, family.deadline_ns);
        if (!way) return failure_of(way.error(), child);
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
    Failure failure;
    for (uint32_t index = 0; index < notices.size(); ++index) {
        failure.note(notices[index]->finish(), family.place.children[index].rank);
    }
    return failure;
}

Failure Collectives::await(Family& family) {
    std::atomic<uint32_t>& bits = family.bits();
    const auto missing = [&] { return family.expected & ~bits.load(std::memory_order_acquire); };
    const Failure failure =
        lookout_.wait({.word = bits,
                       .has_come = [&] { return missing() == 0; },
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

// ---- what became of it

Failure Collectives::known_loss() const noexcept {
    const auto lost = lookout_.told_loss();
    return lost ? Failure{HANARE_STATUS_PEER_LOST, *lost} : Failure{};
}

Result<void> Collectives::outcome(const char* what, const Failure& failure) {
    if (failure.is_none()) return {};
    if (failure.status == HANARE_STATUS_PEER_LOST) spread_loss(failure.rank);
    if (failure.status == HANARE_STATUS_TIMEOUT) {
        return fail(failure.status, "%s: not all tasks came in time", what);
    }
    return fail(failure.status, "%s: task %u: %s", what, failure.rank,
                hanare_status_text(failure.status));
}

// Whoever learns of it tells those that it tells in barriers, so that all do.
void Collectives::spread_loss(uint32_t rank) {
    if (has_spread_loss_) return;
    has_spread_loss_ = true;
    uint32_t none = 0;
    communicator_.control().words().lost.compare_exchange_strong(none, rank + 1);
    const uint64_t deadline_ns = sys::now_ns() + kSpread_ns;
    for (uint32_t round = 0; round < rounds_for(communicator_.size()); ++round) {
        const uint32_t to = (communicator_.rank() + (1u << round)) % communicator_.size();
        if (to == rank || to == communicator_.rank()) continue;
        const auto way = communicator_.way_to(to, deadline_ns);
        if (!way) continue;
        fabric::Operation news;
        news.kind = fabric::Kind::kFetch;
        news.fetch_op = fabric::FetchOp::kCompareSwap;
        news.width = sizeof(uint32_t);
        news.capability = (*way)->control.words;
        news.offset = offsetof(ControlWords, lost);
        news.operand = rank + 1;
        news.deadline_ns = deadline_ns;
        make_waking(news);
        (*way)->link->carry_out(news);
    }
}

}  // namespace hanare::job
