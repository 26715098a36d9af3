// SPDX-License-Identifier: Apache-2.0
//
// Server, as far as forked children share its lease: each process is a member by connections of its
// own, so that it can be cut off when it has died.
#include <cerrno>

#include "lease/ask.hpp"
#include "remote/server.hpp"
#include "sys/clock.hpp"
#include "telemetry/raw_line.hpp"

namespace hanare::remote {
namespace {

// For an answer of the server itself, which may lie behind much else.
constexpr uint64_t kAnswerTimeouts = 3;

}  // namespace

// Nothing is put or got by a connection before this is answered: what it sends can be cut off.
hanare_status Server::join(fabric::TcpLink& link, uint32_t row) noexcept {
    lease::Question question;
    question.what = lease::Ask::kJoin;
    question.lease = lease_;
    question.first = row + 1;
    lease::Reply reply;
    return lease::ask(link, question, sys::now_ns() + kAnswerTimeouts * timeout_ns(), reply);
}

Result<void> Server::take_part(uint32_t row) {
    for (const auto& link : links_) {
        const hanare_status status = join(*link, row);
        if (status == HANARE_STATUS_OK) continue;
        return fail(HANARE_STATUS_STORE_UNAVAILABLE, "memory server %s: %s", address_.c_str(),
                    hanare_status_text(status));
    }
    if (fence(0)) return {};
    return fail(HANARE_STATUS_STORE_UNAVAILABLE,
                "memory server %s is of an earlier version, which cannot serve programs that fork",
                address_.c_str());
}

bool Server::fence(uint64_t rows) noexcept {
    lease::Question question;
    question.what = lease::Ask::kFence;
    question.lease = lease_;
    question.bytes = rows;
    lease::Reply reply;
    const hanare_status status = lease::ask(link(Use::kFaults), question,
                                            sys::now_ns() + kAnswerTimeouts * timeout_ns(), reply);
    if (status == HANARE_STATUS_OK) return true;
    if (status != HANARE_STATUS_INVALID_ARGUMENT) note_failure(status);
    return false;
}

bool Server::prepare_fork(uint32_t row) noexcept {
    const auto refuse = [this](const char* why) {
        telemetry::RawLine line;
        line.text("hanare: cannot fork: ").text(why);
        line.write_stderr();
        finish_fork();
        return false;
    };
    if (is_lost()) return refuse(trouble());
    auto link = children_->connect_for_child();
    if (!link) return refuse(link.error().text);
    const hanare_status status = join(**link, row);
    childs_link_ = std::move(*link);
    if (status == HANARE_STATUS_OK) return true;
    return refuse(status == HANARE_STATUS_TIMEOUT ? silent_.c_str() : hanare_status_text(status));
}

void Server::finish_fork() noexcept {
    if (childs_link_ != nullptr) childs_link_->abandon_in_child();  // which it stays open for
    childs_link_.reset();
    children_->finish_fork();
}

// The connections' objects stay: channels and transfers that nobody uses any more know them, and
// another thread of the parent's may have been about to allocate.
void Server::become_child() noexcept {
    abandon_in_child();
    auto& own = links_[static_cast<size_t>(Use::kFaults)];
    static_cast<void>(own.release());
    own = std::move(childs_link_);
    children_->become_child();
}

}  // namespace hanare::remote
