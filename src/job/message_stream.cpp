// SPDX-License-Identifier: Apache-2.0
#include "job/message_stream.hpp"

#include <array>
#include <cerrno>

namespace hanare::job {
namespace {

std::unexpected<Error> lost() {
    // Not PEER_LOST: no task is gone for that.
    return fail(HANARE_STATUS_SYSTEM, "the connection to the rendezvous is over");
}

}  // namespace

MessageStream::MessageStream(std::unique_ptr<fabric::Transport> transport)
    : transport_(std::move(transport)) {}

void MessageStream::queue(const Message& message) { append(out_, message); }

int MessageStream::flush() {
    while (!out_.empty()) {
        const sys::Part part = {out_.data(), out_.size()};
        const ptrdiff_t moved = transport_->send({&part, 1});
        if (moved < 0) return static_cast<int>(moved);
        out_.erase(out_.begin(), out_.begin() + moved);
    }
    return transport_->flush();
}

Result<void> MessageStream::flush(const Deadline& deadline) {
    for (int error = 0; (error = flush()) != 0;) {
        if (error != -EAGAIN) return lost();
        if (deadline.is_over()) {
            return fail(HANARE_STATUS_TIMEOUT, "the rendezvous does not take what is sent");
        }
        sys::wait_for_socket(descriptor(), {.to_write = true}, deadline.left_ms());
    }
    return {};
}

// Whether there was something.
bool MessageStream::take_more(Incoming& outcome) {
    std::array<std::byte, 4096> part;
    const sys::Part place = {part.data(), part.size()};
    const ptrdiff_t moved = transport_->receive({&place, 1});
    if (moved > 0) {
        in_.insert(in_.end(), part.begin(), part.begin() + moved);
        return true;
    }
    outcome = moved == -EAGAIN    ? Incoming::kNothing
              : moved == -EBADMSG ? Incoming::kNonsense
                                  : Incoming::kEnd;
    return false;
}

MessageStream::Incoming MessageStream::receive(Message& message) {
    for (;;) {
        size_t used = 0;
        switch (parse(in_, message, used)) {
            case Parsed::kMessage:
                in_.erase(in_.begin(), in_.begin() + static_cast<ptrdiff_t>(used));
                return Incoming::kMessage;
            case Parsed::kNonsense: return Incoming::kNonsense;
            case Parsed::kIncomplete: break;
        }
        Incoming outcome = Incoming::kNothing;
        if (!take_more(outcome)) return outcome;
    }
}

Result<Message> MessageStream::receive(const Deadline& deadline) {
    Message message;
    for (;;) {
        switch (receive(message)) {
            case Incoming::kMessage: return message;
            case Incoming::kEnd: return lost();
            case Incoming::kNonsense:
                return fail(HANARE_STATUS_SYSTEM, "the rendezvous talks nonsense");
            case Incoming::kNothing: break;
        }
        if (deadline.is_over()) {
            return fail(HANARE_STATUS_TIMEOUT, "the rendezvous does not answer in time");
        }
        sys::wait_for_socket(descriptor(), {.to_read = true}, deadline.left_ms());
    }
}

}  // namespace hanare::job
