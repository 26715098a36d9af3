// SPDX-License-Identifier: Apache-2.0
#include "job/peer.hpp"

#include "job/word_wait.hpp"

namespace hanare::job {
namespace {

// Of one attempt to connect: between two, who ends the peer is heeded.
constexpr int kConnectMsMax = 10'000;

}  // namespace

Result<const Peer::Way*> Peer::way(const Connect& connect, uint64_t deadline_ns) {
    if (const Way* const known = known_way(); known != nullptr) return known;
    const TimedLock::Guard guard(connecting_, deadline_ns);
    if (!guard) {
        return fail(HANARE_STATUS_TIMEOUT, "task %u: another thread is still connecting to it",
                    rank_);
    }
    while (made_ == nullptr) {
        if (is_ended_.load()) {
            return fail(HANARE_STATUS_PEER_LOST, "task %u: this task has ended its links", rank_);
        }
        const int left_ms = ms_until(deadline_ns, kConnectMsMax);
        auto way = connect(rank_, left_ms);
        if (!way) {
            const bool may_go_on = way.error().status == HANARE_STATUS_TIMEOUT &&
                                   ms_until(deadline_ns, kConnectMsMax) > 0;
            if (may_go_on) continue;
            return std::unexpected(way.error());
        }
        made_ = std::make_unique<Way>(std::move(*way));
        // Whoever ends the peer sees the way, or is seen here.
        way_.store(made_.get());
        if (is_ended_.load()) made_->link->end();
    }
    return made_.get();
}

// Posted within the lock, so that the list has the link's order: what is done is in front.
void Peer::post(fabric::Link* link, Posted& posted) {
    const std::lock_guard guard(lock_);
    posted.peer_ = this;
    posted.ticket_ = ++tickets_;
    posted_.push_back(&posted);
    if (link != nullptr) link->post(posted.operation);
}

void Peer::complete(Posted& posted) {
    Posted::Callback callback = nullptr;
    void* context = nullptr;
    hanare_status status = HANARE_STATUS_OK;
    {
        const std::lock_guard guard(lock_);
        if (!posted.linked()) return;  // somebody else has
        posted_.remove(&posted);
        callback = posted.callback;
        context = posted.context;
        status = posted.status();
        // Without a callback it may be gone from here on.
        posted.is_complete_.store(true, std::memory_order_release);
    }
    if (callback != nullptr) callback(context, posted, status);
}

bool Peer::test(Posted& posted) {
    if (posted.is_complete()) return true;
    const Way* const way = known_way();
    if (way != nullptr && !way->link->test(posted.operation)) return false;
    complete(posted);
    return true;
}

hanare_status Peer::wait(Posted& posted) {
    if (posted.is_complete()) return posted.status();
    if (const Way* const way = known_way(); way != nullptr) way->link->wait(posted.operation);
    const hanare_status status = posted.operation.status();
    complete(posted);
    return status;
}

// The first of the list, if it is done and not newer.  Nobody ends it while the lock is held, since
// it is not complete.
bool Peer::complete_first(uint64_t last_ticket) {
    Posted* first = nullptr;
    Posted::Callback callback = nullptr;
    void* context = nullptr;
    hanare_status status = HANARE_STATUS_OK;
    {
        const std::lock_guard guard(lock_);
        first = posted_.front();
        if (first == nullptr || first->ticket_ > last_ticket) return false;
        const Way* const way = known_way();
        if (way != nullptr && !way->link->test(first->operation)) return false;
        posted_.remove(first);
        callback = first->callback;
        context = first->context;
        status = first->status();
        first->is_complete_.store(true, std::memory_order_release);
    }
    if (callback != nullptr) callback(context, *first, status);
    return true;
}

uint64_t Peer::last_ticket() {
    const std::lock_guard guard(lock_);
    return posted_.empty() ? 0 : tickets_;
}

void Peer::complete_what_is_done() {
    const uint64_t last = last_ticket();
    while (last != 0 && complete_first(last)) {
    }
}

hanare_status Peer::flush(uint64_t deadline_ns) {
    complete_what_is_done();
    const uint64_t last = last_ticket();
    if (last == 0) return HANARE_STATUS_OK;
    hanare_status status = HANARE_STATUS_OK;
    if (const Way* const way = known_way(); way != nullptr) {
        // Done in order: when this, which asks for nothing, is answered, all before it is.
        fabric::Operation last_one;
        last_one.kind = fabric::Kind::kGet;
        last_one.capability = way->control.words;
        last_one.deadline_ns = deadline_ns;
        status = way->link->carry_out(last_one);
    }
    while (complete_first(last)) {
    }
    const bool is_failure = status == HANARE_STATUS_TIMEOUT || status == HANARE_STATUS_PEER_LOST;
    return is_failure ? status : HANARE_STATUS_OK;
}

void Peer::end() noexcept {
    is_ended_.store(true);
    if (const Way* const way = way_.load(); way != nullptr) way->link->end();
}

}  // namespace hanare::job
