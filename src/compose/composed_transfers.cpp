// SPDX-License-Identifier: Apache-2.0
#include "compose/composed_transfers.hpp"

#include <algorithm>

#include "compose/pieces.hpp"
#include "sys/signal.hpp"

namespace hanare::compose {

using store::IoKind;
using store::IoRequest;

std::unique_ptr<store::SharedTransfers> ComposedTransfers::open(ComposedStore& store) {
    if (!store.begin_transfers()) return nullptr;
    std::unique_ptr<ComposedTransfers> transfers(new ComposedTransfers(store));
    Members& members = store.members();
    for (uint32_t number = 0; number < members.count(); ++number) {
        if (members[number].transfers() == nullptr) return nullptr;
    }
    if (store.layout().kind == Kind::kParity) {
        auto memory = sys::Mapping::reserve(kParityBytes, kOsPageBytes);
        if (!memory) return nullptr;
        transfers->parity_memory_ = std::move(*memory);
        transfers->parity_count_ = kParityBytes / store.layout().strip_bytes;
    }
    if (!store.healer().add_listener(*transfers)) return nullptr;
    return transfers;
}

// A list may have members that are made of others, whose locks are taken inside.
ComposedTransfers::ComposedTransfers(ComposedStore& store)
    : store_(store),
      jobs_(std::make_unique<Job[]>(kInFlightMax)),
      parts_(std::make_unique<Part[]>(kParts)),
      start_lock_(is_list() ? sys::LockRank::kLists : sys::LockRank::kComposed) {}

ComposedTransfers::~ComposedTransfers() {
    store_.healer().remove_listener(*this);
    Members& members = store_.members();
    for (uint32_t number = 0; number < members.count() && is_under_way(); ++number) {
        members[number].end_transfers();
    }
    for (uint64_t number = jobs_taken_.load(); number != jobs_begun_.load(); ++number) {
        if (job(number).stage == Stage::kUnderWay) job(number).group.leave();
    }
    store_.end_transfers();
}

// With a lost member a strip in K + 1 would have to be made again: the keeper can wait for that.
bool ComposedTransfers::is_refused() const noexcept {
    if (is_refused_.load(std::memory_order_relaxed)) return true;
    return store_.layout().kind == Kind::kParity && store_.members().lost() != 0;
}

// ---- starting

size_t ComposedTransfers::start(IoRequest* const* requests, size_t count) noexcept {
    const sys::SignalBlock no_signals;
    size_t started = 0;
    Part* refused = nullptr;
    {
        const sys::LockGuard guard(start_lock_);
        const uint64_t first = parts_begun_;
        while (started < count && add(*requests[started])) ++started;
        refused = hand_over(first);
    }
    carry_out(refused);
    return started;
}

bool ComposedTransfers::add(IoRequest& request) noexcept {
    const uint64_t number = jobs_begun_.load(std::memory_order_relaxed);
    if (number - jobs_taken_.load(std::memory_order_acquire) == kInFlightMax) return false;
    Job& next = job(number);
    next = {
        .request = &request, .group = store_.group_at(request.offset), .first_part = parts_begun_};
    if (!next.group.try_enter()) return false;
    if (!plan(next)) {
        next.group.leave();
        return false;
    }
    if (request.kind == IoKind::kWrite) next.group.note_written();
    jobs_begun_.store(number + 1, std::memory_order_release);
    return true;
}

// False: nothing has come of it.
bool ComposedTransfers::plan(Job& job) noexcept {
    const Layout& layout = store_.layout();
    const IoRequest& request = *job.request;
    for (uint32_t role = 0; role < layout.total; ++role) {
        const auto place = job.group.place(role);
        if (!place) return false;
        const auto* const transfers = store_.members()[place->member].transfers();
        if (transfers != nullptr && !transfers->is_refused()) continue;
        is_refused_.store(true, std::memory_order_relaxed);
        return false;
    }
    const Roles roles = store_.io().roles_of(job.group);
    const PieceCounts most = most_pieces(layout, request);
    const uint64_t parts = parts_begun_ - parts_taken_.load(std::memory_order_acquire);
    const uint64_t parities = parities_begun_ - parities_taken_.load(std::memory_order_acquire);
    if (!has_plain_pieces(layout, roles, request) || parts + most.pieces > kParts ||
        parities + most.parities > parity_count_) {
        return false;
    }
    const auto take_parity = [&] {
        ++job.parities;
        return parity_memory_.address() + parities_begun_++ % parity_count_ * layout.strip_bytes;
    };
    const auto add = [&](uint32_t role, uint64_t offset, std::byte* memory, size_t bytes,
                         std::byte*) { add_part(job, role, offset, memory, bytes); };
    for_each_piece(layout, roles, request, add, take_parity);
    return true;
}

void ComposedTransfers::add_part(Job& job, uint32_t role, uint64_t offset, std::byte* memory,
                                 size_t bytes) noexcept {
    const Place place = *job.group.place(role);
    Part& next = part(parts_begun_++);
    ++job.parts;
    static_cast<IoRequest&>(next) = {.kind = job.request->kind,
                                     .offset = place.offset + offset,
                                     .memory = memory,
                                     .bytes = bytes};
    next.member = &store_.members()[place.member];
    next.is_handed_over = false;
    next.state.store(State::kNew, std::memory_order_relaxed);
}

// All from that one on, to each member what is its own; what they do not take.
ComposedTransfers::Part* ComposedTransfers::hand_over(uint64_t first) noexcept {
    Part* refused = nullptr;
    for (; first != parts_begun_; ++first) {
        if (part(first).is_handed_over) continue;
        Member& member = *part(first).member;
        std::array<IoRequest*, kStartMax> its{};
        size_t count = 0;
        for (uint64_t number = first; number != parts_begun_; ++number) {
            Part& one = part(number);
            if (one.member != &member) continue;
            one.is_handed_over = true;
            its[count++] = &one;
            if (count < its.size()) continue;
            refused = hand_over(member, its.data(), count, refused);
            count = 0;
        }
        if (count != 0) refused = hand_over(member, its.data(), count, refused);
    }
    return refused;
}

ComposedTransfers::Part* ComposedTransfers::hand_over(Member& member, IoRequest* const* parts,
                                                      size_t count, Part* refused) noexcept {
    const size_t started = member.transfers()->start(parts, count);
    for (size_t i = 0; i < count; ++i) {
        Part& one = *static_cast<Part*>(parts[i]);
        if (i < started) {
            State unstarted = State::kNew;  // or it is done already
            one.state.compare_exchange_strong(unstarted, State::kStarted);
        } else {
            one.next_refused = refused;
            refused = &one;
        }
    }
    return refused;
}

// They are waited for.  Their numbers are not given to others before they are done.
void ComposedTransfers::carry_out(Part* refused) noexcept {
    while (refused != nullptr) {
        Part& one = *refused;
        refused = one.next_refused;
        store::Store& store = one.member->store();
        one.status = one.kind == IoKind::kRead ? store.read(one.offset, one.memory, one.bytes)
                                               : store.write(one.offset, one.memory, one.bytes);
        one.state.store(State::kDone, std::memory_order_release);
    }
}

// ---- taking

const ComposedTransfers::Part* ComposedTransfers::first_undone(const Job& job) const noexcept {
    for (uint64_t number = job.first_part; number != job.first_part + job.parts; ++number) {
        if (part(number).state.load(std::memory_order_acquire) != State::kDone) {
            return &part(number);
        }
    }
    return nullptr;
}

// With `wait` it may be that they are not, too: one is not started yet.
bool ComposedTransfers::are_parts_done(const Job& job, bool wait) noexcept {
    while (const Part* const next = first_undone(job)) {
        const State state = next->state.load(std::memory_order_acquire);
        if (state == State::kDone) continue;
        if (state == State::kNew) return false;
        // Of that member, and what was started on it before.
        IoRequest* const done = next->member->transfers()->next_completed(wait);
        if (done == nullptr) return false;
        static_cast<Part*>(done)->state.store(State::kDone, std::memory_order_release);
    }
    return true;
}

// Of one whose parts are done.
void ComposedTransfers::settle(Job& job) noexcept {
    IoRequest& request = *job.request;
    request.status = HANARE_STATUS_OK;
    for (uint64_t number = job.first_part; number != job.first_part + job.parts; ++number) {
        const Part& one = part(number);
        if (one.status == HANARE_STATUS_OK) continue;
        request.status = one.status;
        // Who finds out asks others first, and they may have it.
        if (one.status == HANARE_STATUS_CORRUPT) store_.io().note(*one.member, one.status);
    }
    if (request.status != HANARE_STATUS_OK && store_.layout().spares() != 0) {
        store_.io().carry_out(job.group, request);
    }
    if (request.status == HANARE_STATUS_OK) request.done_bytes = request.bytes;
    job.group.leave();
    job.stage = Stage::kSettled;
}

// What has arrived, of all members.
void ComposedTransfers::collect() noexcept {
    Members& members = store_.members();
    for (uint32_t number = 0; number < members.count(); ++number) {
        store::SharedTransfers* const transfers = members[number].transfers();
        if (transfers == nullptr) continue;
        while (IoRequest* const done = transfers->next_completed(false)) {
            static_cast<Part*>(done)->state.store(State::kDone, std::memory_order_release);
        }
    }
}

// As far as it was collected.
ComposedTransfers::Job* ComposedTransfers::first_done() noexcept {
    const uint64_t end = jobs_begun_.load(std::memory_order_acquire);
    for (uint64_t number = jobs_taken_.load(std::memory_order_relaxed); number != end; ++number) {
        Job& each = job(number);
        const bool is_done = each.stage == Stage::kUnderWay && first_undone(each) == nullptr;
        if (is_done) settle(each);
        if (each.stage == Stage::kSettled) return &each;
    }
    return nullptr;
}

IoRequest* ComposedTransfers::hand_out(Job& job) noexcept {
    IoRequest* const request = job.request;
    job.stage = Stage::kTaken;
    uint64_t number = jobs_taken_.load(std::memory_order_relaxed);
    const uint64_t end = jobs_begun_.load(std::memory_order_acquire);
    for (; number != end && this->job(number).stage == Stage::kTaken; ++number) {
        const Job& oldest = this->job(number);
        parts_taken_.store(oldest.first_part + oldest.parts, std::memory_order_release);
        parities_taken_.fetch_add(oldest.parities, std::memory_order_release);
    }
    jobs_taken_.store(number, std::memory_order_release);
    return request;
}

IoRequest* ComposedTransfers::next_completed(bool wait) noexcept {
    const sys::SignalBlock no_signals;
    const Taking taking(taking_);
    if (!taking.is_ours()) return nullptr;
    if (is_list()) {
        collect();
        Job* const done = first_done();
        if (done != nullptr) return hand_out(*done);
        if (!wait) return nullptr;
    }
    // The oldest that there is was not taken.
    const uint64_t number = jobs_taken_.load(std::memory_order_relaxed);
    if (number == jobs_begun_.load(std::memory_order_acquire)) return nullptr;
    Job& oldest = job(number);
    if (oldest.stage == Stage::kUnderWay) {
        if (!are_parts_done(oldest, wait)) return nullptr;
        settle(oldest);
    }
    return hand_out(oldest);
}

// Where another thread takes them, it need not be told.
bool ComposedTransfers::has_completed() const noexcept {
    if (!is_under_way()) return false;
    const sys::SignalBlock no_signals;
    const Taking taking(taking_);
    const uint64_t number = jobs_taken_.load(std::memory_order_relaxed);
    if (!taking.is_ours() || number == jobs_begun_.load(std::memory_order_acquire)) return false;
    const Job& oldest = job(number);
    const Part* const next = oldest.stage == Stage::kUnderWay ? first_undone(oldest) : nullptr;
    if (next == nullptr) return true;
    if (!is_list()) {
        return next->state.load(std::memory_order_acquire) == State::kStarted &&
               next->member->transfers()->has_completed();
    }
    Members& members = store_.members();
    for (uint32_t member = 0; member < members.count(); ++member) {
        const auto* const transfers = members[member].transfers();
        if (transfers != nullptr && transfers->has_completed()) return true;
    }
    return false;
}

// While the program does not fault nobody takes what has arrived.
void ComposedTransfers::group_wanted() noexcept {
    const sys::SignalBlock no_signals;
    const Taking taking(taking_);
    if (!taking.is_ours()) return;
    collect();
    const uint64_t end = jobs_begun_.load(std::memory_order_acquire);
    for (uint64_t number = jobs_taken_.load(std::memory_order_relaxed); number != end; ++number) {
        Job& each = job(number);
        if (each.stage == Stage::kUnderWay && first_undone(each) == nullptr) settle(each);
    }
}

}  // namespace hanare::compose
