// SPDX-License-Identifier: Apache-2.0
#include "remote/server.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/units.hpp"
#include "lease/ask.hpp"
#include "remote/silence.hpp"
#include "sys/clock.hpp"
#include "sys/futex.hpp"
#include "sys/signal.hpp"

namespace hanare::remote {
namespace {

// For an answer of the server itself, which may lie behind much else.
constexpr uint64_t kAnswerTimeouts = 3;
// How long it may take until what others have given back is free.
constexpr uint64_t kFreeing_ns = 30'000'000'000;
// How long a server is left alone that is busy with what others have given back.
constexpr uint32_t kPause_us = 2000;

// Where a secret may be the reason.
const char* advice_for(const Error& error) noexcept {
    if (error.os_errno == ECONNREFUSED) return "";
    switch (error.status) {
        case HANARE_STATUS_BAD_KEY:
        case HANARE_STATUS_PERMISSION:
        case HANARE_STATUS_PEER_LOST:
            return "; it may want another secret_file (HANARE_SECRET_FILE), or none";
        default: return "";
    }
}

// Of a growth: nothing has happened.
bool is_refusal(hanare_status status) noexcept {
    switch (status) {
        case HANARE_STATUS_STORE_FULL:
        case HANARE_STATUS_LIMIT:
        case HANARE_STATUS_BUSY:
        case HANARE_STATUS_NO_MEMORY:
        case HANARE_STATUS_SYSTEM: return true;
        default: return false;
    }
}

}  // namespace

Server::Server(const Settings& settings, std::unique_ptr<ChildConnector> children)
    : address_(settings.address),
      timeout_ms_(settings.timeout_ms),
      silent_("memory server " + address_ + " has not answered for " + std::to_string(timeout_ms_) +
              " ms"),
      gone_("memory server " + address_ + " has ended the connection"),
      refuses_("memory server " + address_ + " does not know this lease any more"),
      babbles_("memory server " + address_ + " answers what makes no sense"),
      children_(std::move(children)) {}

Result<std::unique_ptr<Server>> Server::open(const Settings& settings, const Connect& connect,
                                             std::unique_ptr<ChildConnector> children) {
    auto server = std::unique_ptr<Server>(new Server(settings, std::move(children)));
    for (size_t use = 0; use < kUses; ++use) {
        auto link = connect(static_cast<Use>(use));
        if (!link) {
            return fail(HANARE_STATUS_STORE_UNAVAILABLE, "memory server %s: %s%s",
                        settings.address.c_str(), link.error().text, advice_for(link.error()));
        }
        server->links_[use] = std::move(*link);
    }
    HANARE_TRY(server->open_lease(settings.client));
    return server;
}

// Where it is silent now, it finds out by the end of the connections.
Server::~Server() {
    if (lease_.number != 0) end();
}

// Its connection keeps the lease.
Result<void> Server::open_lease(const std::string& client) {
    lease::Question question;
    question.what = lease::Ask::kOpen;
    client.copy(question.client, sizeof question.client);
    lease::Reply reply;
    const uint64_t deadline_ns = sys::now_ns() + kAnswerTimeouts * timeout_ns();
    const hanare_status status = lease::ask(link(Use::kFaults), question, deadline_ns, reply);
    const auto unavailable = [&](const char* why) {
        return fail(HANARE_STATUS_STORE_UNAVAILABLE, "memory server %s %s", address_.c_str(), why);
    };
    switch (status) {
        case HANARE_STATUS_OK: break;
        case HANARE_STATUS_BUSY: return unavailable("is being drained: name another one");
        case HANARE_STATUS_LIMIT: return unavailable("has as many clients as it takes");
        case HANARE_STATUS_NOT_SUPPORTED: return unavailable("is none, or one of another version");
        case HANARE_STATUS_TIMEOUT: return unavailable("does not answer");
        case HANARE_STATUS_PEER_LOST:
            return unavailable(
                "has closed the connection: it may want a secret (option secret_file, "
                "HANARE_SECRET_FILE), or have no room for more connections");
        default: return unavailable(hanare_status_text(status));
    }
    lease_ = reply.answer.lease;
    total_bytes_ = reply.answer.total_bytes;
    return {};
}

hanare_status Server::wait(Use use, fabric::Operation& operation) noexcept {
    fabric::TcpLink& connection = link(use);
    Silence silence;
    while (!connection.wait_until(operation, sys::now_ns() + Silence::kSlice_ns)) {
        if (silence.is_longer_than(timeout_ns(), connection.progress(), sys::now_ns())) {
            note_failure(HANARE_STATUS_TIMEOUT);
        }
    }
    return operation.status();
}

hanare_status Server::grow(uint64_t end) noexcept {
    const uint64_t give_up_ns = sys::now_ns() + kFreeing_ns;
    while (bytes() < end) {
        lease::Question question;
        question.what = lease::Ask::kGrow;
        question.lease = lease_;
        question.bytes = end;
        question.first = static_cast<uint32_t>(piece_count_.load(std::memory_order_acquire));
        lease::Reply reply;
        const hanare_status status = lease::ask(
            link(Use::kFaults), question, sys::now_ns() + kAnswerTimeouts * timeout_ns(), reply);
        if (status == HANARE_STATUS_BUSY && sys::now_ns() < give_up_ns) {
            sys::yield_for_us(kPause_us);
            continue;
        }
        if (is_refusal(status)) return HANARE_STATUS_STORE_FULL;
        bool is_good = status == HANARE_STATUS_OK && !reply.extents.empty();
        for (size_t i = 0; is_good && i < reply.extents.size(); ++i) {
            is_good = take(reply.extents[i], question.first + i);
        }
        if (is_good) continue;
        note_failure(status == HANARE_STATUS_OK ? HANARE_STATUS_CORRUPT : status);
        return HANARE_STATUS_STORE_IO;
    }
    return HANARE_STATUS_OK;
}

// Several threads may have asked.  False: the server talks nonsense.
bool Server::take(const lease::Extent& extent, size_t number) noexcept {
    if (number >= lease::kExtentsMax || extent.bytes == 0 ||
        extent.bytes % lease::kExtentAlignmentBytes != 0) {
        return false;
    }
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(lock_);
    const size_t known = piece_count_.load(std::memory_order_relaxed);
    if (number > known) return false;
    if (number < known) return true;
    const uint64_t begin = bytes_.load(std::memory_order_relaxed);
    if (extent.bytes > total_bytes_ - begin) return false;
    pieces_[known] = {begin, begin + extent.bytes, extent.capability};
    piece_count_.store(known + 1, std::memory_order_release);
    bytes_.store(begin + extent.bytes, std::memory_order_release);
    return true;
}

Server::Place Server::place_of(uint64_t offset) const noexcept {
    const size_t count = piece_count_.load(std::memory_order_acquire);
    const auto begin = pieces_.begin();
    const auto end = begin + static_cast<ptrdiff_t>(count);
    const auto piece = std::upper_bound(
        begin, end, offset, [](uint64_t at, const Piece& each) { return at < each.end; });
    if (piece == end) return {};
    return {piece->capability, offset - piece->begin, piece->end - offset};
}

bool Server::is_draining() noexcept {
    if (is_lost()) return false;
    lease::Question question;
    question.what = lease::Ask::kStatus;
    question.first = UINT32_MAX;  // of the leases, none
    lease::Reply reply;
    const hanare_status status = lease::ask(link(Use::kFaults), question,
                                            sys::now_ns() + kAnswerTimeouts * timeout_ns(), reply);
    if (status == HANARE_STATUS_OK) return (reply.answer.flags & lease::kDraining) != 0;
    note_failure(status);
    return false;
}

bool Server::is_known_to_drain() noexcept {
    if (is_lost()) return false;
    fabric::Link& faults = link(Use::kFaults);
    lease::PendingQuestion& question = status_question_;
    if (question.is_posted() && !question.is_answered(faults)) return false;
    bool is_draining = false;
    if (question.is_posted()) {
        lease::Reply reply;
        const hanare_status status = question.take(reply);
        if (status != HANARE_STATUS_OK) {
            note_failure(status);
            return false;
        }
        is_draining = (reply.answer.flags & lease::kDraining) != 0;
    }
    lease::Question status;
    status.first = UINT32_MAX;  // of the leases, none
    question.post(faults, status);
    return is_draining;
}

void Server::end() noexcept {
    if (is_lost()) return;
    lease::Question question;
    question.what = lease::Ask::kEnd;
    question.lease = lease_;
    lease::Reply reply;
    static_cast<void>(
        lease::ask(link(Use::kFaults), question, sys::now_ns() + timeout_ns(), reply));
    note_failure(HANARE_STATUS_PEER_LOST);
}

void Server::note_failure(hanare_status status) noexcept {
    int none = 0;
    lost_.compare_exchange_strong(none,
                                  status == HANARE_STATUS_OK ? HANARE_STATUS_INTERNAL : status);
    for (const auto& link : links_) link->end();
}

const char* Server::trouble() const noexcept {
    switch (lost_.load(std::memory_order_acquire)) {
        case 0: return nullptr;
        case HANARE_STATUS_TIMEOUT: return silent_.c_str();
        case HANARE_STATUS_PEER_LOST: return gone_.c_str();
        case HANARE_STATUS_BAD_KEY:
        case HANARE_STATUS_NOT_FOUND: return refuses_.c_str();
        default: return babbles_.c_str();
    }
}

void Server::abandon_in_child() noexcept {
    for (const auto& link : links_) link->abandon_in_child();
}

}  // namespace hanare::remote
