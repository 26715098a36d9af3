// SPDX-License-Identifier: Apache-2.0
#include "job/communicator.hpp"

#include <algorithm>
#include <cstdio>

#include "fabric/local_link.hpp"
#include "fabric/self_link.hpp"
#include "fabric/tcp_link.hpp"
#include "hanare/status.h"
#include "sys/random.hpp"
#include "sys/signal.hpp"

namespace hanare::job {
namespace {

// Of connecting by UCX.
constexpr int kUcxMsMax = 2'000;

const char* name_of(fabric::Kind kind) noexcept {
    switch (kind) {
        case fabric::Kind::kPut: return "put";
        case fabric::Kind::kGet: return "get";
        case fabric::Kind::kFetch: return "fetch-op";
        case fabric::Kind::kPush: return "push";
        case fabric::Kind::kPop: return "pop";
        case fabric::Kind::kSignal: return "signal";
        case fabric::Kind::kCall: return "call";
        default: return "operation";
    }
}

// That nobody else has.
Result<std::string> make_local_address() {
    uint64_t number = 0;
    HANARE_TRY(sys::fill_random(std::as_writable_bytes(std::span(&number, 1))));
    char name[40];
    std::snprintf(name, sizeof name, "@hanare-task-%016llx",
                  static_cast<unsigned long long>(number));
    return std::string(name);
}

}  // namespace

void Communicator::End::operator()(Communicator* communicator) const noexcept {
    if (!communicator->mark_.is_child()) delete communicator;
}

Result<Communicator::Handle> Communicator::open(Job& job, const Settings& settings) {
    if (job.size() == 0 || job.size() > Job::kTasksMax || job.rank() >= job.size()) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "task %u of %u; a job has 1 to %u tasks",
                    job.rank(), job.size(), Job::kTasksMax);
    }
    HANARE_TRY_ASSIGN(sys::ForkMark mark, sys::ForkMark::make());
    Handle communicator(new Communicator(job, settings, std::move(mark)));
    if (settings.uses_ucx) HANARE_TRY(communicator->exposures_.use_ucx());
    HANARE_TRY_ASSIGN(communicator->control_,
                      ControlMemory::expose(communicator->exposures_.regions()));
    HANARE_TRY(communicator->serve());
    HANARE_TRY(communicator->publish());
    return communicator;
}

Communicator::Communicator(Job& job, const Settings& settings, sys::ForkMark mark)
    : job_(job),
      settings_(settings),
      mark_(std::move(mark)),
      rank_(job.rank()),
      size_(job.size()),
      connect_([this](uint32_t to, int timeout_ms) { return connect(to, timeout_ms); }),
      peers_(size_) {}

Communicator::~Communicator() {
    end_links();
    if (service_ != nullptr) service_->stop();
    if (server_.joinable()) server_.join();
    exposures_.regions().wait_for_visitors();
}

// Alone it has nobody to serve.
Result<void> Communicator::serve() {
    if (size_ == 1) return {};
    if (settings_.uses_shared_memory) {
        HANARE_TRY_ASSIGN(local_address_, make_local_address());
    }
    HANARE_TRY_ASSIGN(service_, fabric::TcpService::open({.host = job_.host(),
                                                          .port = 0,
                                                          .local_address = local_address_,
                                                          .secret = job_.secret(),
                                                          .spin_us = settings_.spin_us,
                                                          .calls = settings_.calls},
                                                         exposures_.regions()));
    // Inherited by the thread, which touches exposed memory.
    const sys::SignalBlock no_signals;
    server_ = std::thread([service = service_.get()] { service->run(); });
    return {};
}

Result<void> Communicator::publish() {
    if (size_ == 1) return {};
    Card card = {.host = job_.host(),
                 .port = service_->port(),
                 .local_address = local_address_,
                 .control = control_->keys(),
                 .ucx = {}};
    if (UcxSide* const ucx = exposures_.ucx(); ucx != nullptr) card.ucx = ucx->card();
    HANARE_TRY_ASSIGN(const std::vector<std::byte> bytes, card.bytes());
    return job_.publish(bytes, settings_.timeout_ms);
}

Result<void> Communicator::check_process() const {
    if (!mark_.is_child()) return {};
    return fail(HANARE_STATUS_FORKED, "a child of fork() is no task of its parent's job");
}

Result<void> Communicator::check_rank(uint32_t rank) const {
    HANARE_TRY(check_process());
    if (rank < size_) return {};
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "task %u; the job has tasks 0 to %u", rank,
                size_ - 1);
}

// ---- peers

Peer& Communicator::peer(uint32_t rank) {
    std::atomic<Peer*>& place = peers_[rank];
    if (Peer* const known = place.load(std::memory_order_acquire); known != nullptr) return *known;
    const std::lock_guard guard(peers_lock_);
    if (place.load(std::memory_order_relaxed) == nullptr) {
        made_peers_.push_back(std::make_unique<Peer>(rank));
        if (are_links_ended_) made_peers_.back()->end();
        place.store(made_peers_.back().get(), std::memory_order_release);
    }
    return *place.load(std::memory_order_relaxed);
}

std::vector<Peer*> Communicator::known_peers() {
    const std::lock_guard guard(peers_lock_);
    std::vector<Peer*> known;
    for (const auto& made : made_peers_) known.push_back(made.get());
    return known;
}

Result<Card> Communicator::card_of(uint32_t rank, int timeout_ms) {
    HANARE_TRY_ASSIGN(const std::vector<std::byte> bytes, job_.card_of(rank, timeout_ms));
    return Card::parse(bytes);
}

// The same address is this machine; if it is not, or another user's task,
// nobody is found there.
Result<std::unique_ptr<fabric::Link>> Communicator::link_to(const Card& card, int timeout_ms) {
    const uint64_t deadline_ns = deadline_after(timeout_ms);
    if (!local_address_.empty() && !card.local_address.empty() && card.host == job_.host()) {
        auto local = fabric::LocalLink::connect({.address = card.local_address,
                                                 .spin_us = settings_.spin_us,
                                                 .timeout_ms = timeout_ms});
        if (local) return std::unique_ptr<fabric::Link>(std::move(*local));
        if (local.error().status == HANARE_STATUS_TIMEOUT) return std::unexpected(local.error());
    }
    HANARE_TRY_ASSIGN(auto link,
                      fabric::TcpLink::connect({.host = card.host,
                                                .port = card.port,
                                                .secret = job_.secret(),
                                                .spin_us = settings_.spin_us,
                                                .timeout_ms = ms_until(deadline_ns, timeout_ms)}));
    return std::unique_ptr<fabric::Link>(std::move(link));
}

Result<Peer::Way> Communicator::connect(uint32_t rank, int timeout_ms) {
    if (rank == rank_) {
        return Peer::Way{std::make_unique<fabric::SelfLink>(exposures_.regions()),
                         control_->keys()};
    }
    const uint64_t deadline_ns = deadline_after(timeout_ms);
    HANARE_TRY_ASSIGN(const Card card, card_of(rank, timeout_ms));
    HANARE_TRY_ASSIGN(auto link, link_to(card, ms_until(deadline_ns, timeout_ms)));
    if (UcxSide* const ucx = exposures_.ucx(); ucx != nullptr && card.ucx.rights != 0) {
        // The operation for which this is done has time left, also where nobody answers UCX.
        const int left_ms = ms_until(deadline_ns, timeout_ms);
        link = ucx->extend(std::move(link), card.ucx, std::min(left_ms / 2, kUcxMsMax));
    }
    return Peer::Way{std::move(link), card.control};
}

Result<const Peer::Way*> Communicator::way_to(uint32_t rank, uint64_t deadline_ns) {
    HANARE_TRY(check_rank(rank));
    return peer(rank).way(connect_, deadline_ns);
}

void Communicator::end_links() noexcept {
    const std::lock_guard guard(peers_lock_);
    are_links_ended_ = true;
    for (const auto& made : made_peers_) made->end();
}

// ---- operations

Result<void> Communicator::describe(uint32_t rank, const fabric::Operation& operation) const {
    const hanare_status status = operation.status();
    if (status == HANARE_STATUS_OK) return {};
    return fail(status, "%s of %llu bytes, task %u, region %u at %llu: %s", name_of(operation.kind),
                static_cast<unsigned long long>(operation.bytes()), rank,
                operation.capability.region, static_cast<unsigned long long>(operation.offset),
                hanare_status_text(status));
}

Result<void> Communicator::carry_out(uint32_t rank, fabric::Operation& operation) {
    HANARE_TRY_ASSIGN(const Peer::Way* const way, way_to(rank, operation.deadline_ns));
    way->link->carry_out(operation);
    return describe(rank, operation);
}

// The target does not know that one depends on the other.  Where both have the
// same capability and the word lies behind the range, a notice that is in
// range, with all rights there, says that the put was: both go at once.
Result<void> Communicator::put_and_notify(uint32_t rank, fabric::Operation& put,
                                          fabric::Operation& notice) {
    make_waking(notice);
    constexpr fabric::Rights kBoth = fabric::kWrite | fabric::kAtomic;
    const bool is_same = put.capability.key == notice.capability.key &&
                         put.capability.region == notice.capability.region &&
                         (put.capability.rights & kBoth) == kBoth;
    const bool is_behind = notice.offset >= put.offset && notice.offset - put.offset >= put.bytes();
    if (!is_same || !is_behind) {
        HANARE_TRY(carry_out(rank, put));
        return carry_out(rank, notice);
    }
    HANARE_TRY_ASSIGN(const Peer::Way* const way, way_to(rank, put.deadline_ns));
    way->link->post(put);
    way->link->carry_out(notice);
    way->link->wait(put);
    HANARE_TRY(describe(rank, put));
    return describe(rank, notice);
}

Result<void> Communicator::post(uint32_t rank, Posted& posted) {
    HANARE_TRY(check_rank(rank));
    const auto way = way_to(rank, posted.operation.deadline_ns);
    if (!way) {
        posted.operation.note_failure(way.error().status);
        posted.operation.finish();
    }
    peer(rank).post(way ? (*way)->link.get() : nullptr, posted);
    return {};
}

Result<bool> Communicator::test(Posted& posted) {
    HANARE_TRY(check_process());
    return posted.peer_->test(posted);
}

Result<void> Communicator::wait(Posted& posted) {
    HANARE_TRY(check_process());
    const uint32_t rank = posted.peer_->rank();
    const hanare_status status = posted.peer_->wait(posted);
    if (status == HANARE_STATUS_OK) return {};
    return fail(status, "an operation on task %u: %s", rank, hanare_status_text(status));
}

Result<void> Communicator::progress() {
    HANARE_TRY(check_process());
    for (Peer* const known : known_peers()) known->complete_what_is_done();
    return {};
}

Result<void> Communicator::flush(uint32_t rank, uint64_t deadline_ns) {
    HANARE_TRY(check_rank(rank));
    const hanare_status status = peer(rank).flush(deadline_ns);
    if (status == HANARE_STATUS_OK) return {};
    return fail(status, "flushing what was posted to task %u: %s", rank,
                hanare_status_text(status));
}

Result<void> Communicator::flush_all(uint64_t deadline_ns) {
    HANARE_TRY(check_process());
    Result<void> first;
    for (Peer* const known : known_peers()) {
        const Result<void> flushed = flush(known->rank(), deadline_ns);
        if (first && !flushed) first = flushed;
    }
    return first;
}

}  // namespace hanare::job
