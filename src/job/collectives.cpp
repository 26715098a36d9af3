// SPDX-License-Identifier: Apache-2.0
#include "job/collectives.hpp"

#include <bit>
#include <cstddef>
#include <cstring>

#include "sys/clock.hpp"

namespace hanare::job {
namespace {

// Telling others that a task is lost.
constexpr uint64_t kSpread_ns = 1000 * kNsPerMs;
// Of how many collectives it is kept why they have failed.
constexpr size_t kFailedMax = 64;

uint32_t rounds_for(uint32_t tasks) noexcept { return std::bit_width(tasks - 1); }

// Its port may be another's now.
bool has_left(hanare_status status) noexcept {
    return status == HANARE_STATUS_PEER_LOST || status == HANARE_STATUS_BAD_KEY;
}

}  // namespace

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
    if (!way && way.error().status != HANARE_STATUS_PEER_LOST) return Failure::of(way.error(), to);
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
    const Failure failure =
        lookout_.wait({.word = word,
                       .has_come =
                           [&] {
                               // Somebody may still wait for this task in an earlier collective.
                               listen();
                               return static_cast<int32_t>(word.load() - barrier_) >= 0;
                           },
                       .awaited = [&](std::vector<uint32_t>& ranks) { ranks.push_back(from); },
                       .deadline_ns = deadline_ns});
    const hanare_status told = way ? (*way)->link->wait(arrival) : HANARE_STATUS_OK;
    if (!failure.is_none()) return failure;
    // What was not sent in time never will be: the round has to be passed again, or the other
    // hangs.
    if (told == HANARE_STATUS_OK || has_left(told)) return {};
    return {told, to};
}

Tree::Place Collectives::place_below(uint32_t root) const {
    return Tree(communicator_.size(), kArity, root).place_of(communicator_.rank());
}

// ---- broadcast

Result<void> Collectives::broadcast(std::span<std::byte> data, uint32_t root,
                                    uint64_t deadline_ns) {
    HANARE_TRY(communicator_.check_process());
    const std::unique_lock guard(lock_, std::try_to_lock);
    if (!guard) return fail(HANARE_STATUS_BUSY, "another thread is in a collective operation");
    ++number_;
    // Without a root nobody knows who is below.
    const Result<void> has_root = communicator_.check_rank(root);
    const Result<void> is_good = has_root ? check_broadcast(data) : has_root;
    if (!is_good) {
        const Failure refused = Failure::of(is_good.error(), communicator_.rank());
        if (has_root) tell_failure(place_below(root).children, refused);
        end(refused);
        return is_good;
    }
    Failure failure = known_loss();
    if (failure.is_none()) failure = broadcast_now(data, root, deadline_ns);
    end(failure);
    return outcome("broadcast", failure);
}

Result<void> Collectives::check_broadcast(std::span<const std::byte> data) const {
    if (data.data() != nullptr || data.empty()) return {};
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "broadcast: data must not be NULL");
}

Failure Collectives::broadcast_now(std::span<std::byte> data, uint32_t root, uint64_t deadline_ns) {
    const Tree::Place place = place_below(root);
    if (place.parent) {
        const Failure failure = get_from(*place.parent, data, deadline_ns);
        if (!failure.is_none()) {
            tell_failure(place.children, failure);
            return failure;
        }
    }
    if (place.children.empty()) return {};
    Family family(*this, place, deadline_ns);
    return pass_on(family, Kind::kBroadcast, data, data.size());
}

Failure Collectives::get_from(uint32_t parent, std::span<std::byte> data, uint64_t deadline_ns) {
    Received told;
    Failure failure = take(Kind::kBroadcast, parent, data.size(), deadline_ns, told);
    if (!failure.is_none()) return failure;
    failure = receive(told, data, deadline_ns);
    const Failure told_parent = acknowledge(told.head, failure, deadline_ns);
    return failure.is_none() ? told_parent : failure;
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
    return got ? Failure{} : Failure::of(got.error(), told.head.parent);
}

// ---- allgather

Result<uint32_t> Collectives::allgather(std::span<const std::byte> own, std::span<std::byte> all,
                                        uint64_t deadline_ns) {
    if (const Result<void> is_good = check_allgather(own, all); !is_good) {
        refuse_allgather(is_good.error().status);
        return std::unexpected(is_good.error());
    }
    const std::unique_lock guard(lock_, std::try_to_lock);
    if (!guard) return fail(HANARE_STATUS_BUSY, "another thread is in a collective operation");
    if (!own.empty()) {
        std::memmove(all.data() + communicator_.rank() * own.size(), own.data(), own.size());
    }
    ++number_;
    Failure failure = known_loss();
    if (failure.is_none()) failure = gather_now(all, own.size(), deadline_ns);
    end(failure);
    ++number_;
    if (failure.is_none()) {
        failure = broadcast_now(all, 0, deadline_ns);
    } else {
        tell_failure(place_below(0).children, failure);
    }
    end(failure);
    HANARE_TRY(outcome("allgather", failure));
    return number_;
}

Result<void> Collectives::check_allgather(std::span<const std::byte> own,
                                          std::span<const std::byte> all) const {
    HANARE_TRY(communicator_.check_process());
    const uint32_t size = communicator_.size();
    if (all.size() / size != own.size() || all.size() % size != 0) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "allgather of %zu bytes from %u tasks into %zu bytes", own.size(), size,
                    all.size());
    }
    if (own.empty() || (own.data() != nullptr && all.data() != nullptr)) return {};
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "allgather: own and all must not be NULL");
}

void Collectives::refuse_allgather(hanare_status why) {
    if (!communicator_.check_process()) return;
    const std::unique_lock guard(lock_, std::try_to_lock);
    if (!guard) return;  // BUSY, which is no collective
    const Failure refused = {why, communicator_.rank()};
    const std::vector<Tree::Child> children = place_below(0).children;
    for (int step = 0; step < 2; ++step) {
        ++number_;
        tell_failure(children, refused);
        end(refused);
    }
}

// Up the tree of task 0, in which each leads a run of ranks: what it has then is a range of `all`.
Failure Collectives::gather_now(std::span<std::byte> all, size_t own_bytes, uint64_t deadline_ns) {
    const Tree::Place place = place_below(0);
    Failure failure;
    if (!place.children.empty()) {
        Family family(*this, place, deadline_ns);
        failure = pass_on(family, Kind::kGather, all, own_bytes);
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
    return done ? Failure{} : Failure::of(done.error(), told.head.parent);
}

// ---- what became of it

void Collectives::end(const Failure& failure) {
    over_ = number_;
    if (failure.is_none() || failure.status == HANARE_STATUS_PEER_LOST) return;
    failed_[number_] = failure;
    if (failed_.size() > kFailedMax) failed_.erase(failed_.begin());
    // Whoever waits for this task need not wait until it calls the next one.
    listen();
}

Failure Collectives::known_loss() const noexcept {
    const auto lost = lookout_.told_loss();
    return lost ? Failure{HANARE_STATUS_PEER_LOST, *lost} : Failure{};
}

Result<void> Collectives::outcome(const char* what, const Failure& failure) {
    if (failure.is_none()) return {};
    if (failure.status == HANARE_STATUS_PEER_LOST) spread_loss(failure.rank);
    if (failure.status == HANARE_STATUS_TIMEOUT && failure.rank == communicator_.rank()) {
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
