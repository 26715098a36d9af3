// SPDX-License-Identifier: Apache-2.0
//
// MessageStream: messages over a connection, without ever waiting.  By one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fabric/transport.hpp"
#include "job/deadline.hpp"
#include "job/message.hpp"

namespace hanare::job {

class MessageStream {
public:
    explicit MessageStream(std::unique_ptr<fabric::Transport> transport);

    int descriptor() const noexcept { return transport_->descriptor(); }

    // It goes with flush().
    void queue(const Message& message);
    size_t queued_bytes() const noexcept { return out_.size(); }
    // 0: everything has gone; -EAGAIN: not at the moment; another negative errno value: never.
    int flush();
    // The same until everything has gone.  TIMEOUT; SYSTEM: the connection is over.
    Result<void> flush(const Deadline& deadline);

    enum class Incoming {
        kMessage,
        kNothing,   // at the moment
        kEnd,       // the connection is over
        kNonsense,  // whoever sends this is none of ours
    };
    Incoming receive(Message& message);
    // Waits for one.  TIMEOUT; SYSTEM: the connection is over.
    Result<Message> receive(const Deadline& deadline);

private:
    bool take_more(Incoming& outcome);

    std::unique_ptr<fabric::Transport> transport_;
    std::vector<std::byte> out_;
    std::vector<std::byte> in_;
};

}  // namespace hanare::job
