// SPDX-License-Identifier: Apache-2.0
//
// BrokerClient: a program's way to its broker (broker_service.hpp), which `hanare run` is: it is
// asked for connections to a memory server, also for children before they are forked.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/result.hpp"
#include "config/server_address.hpp"
#include "fabric/tcp_link.hpp"
#include "remote/broker_messages.hpp"
#include "remote/server.hpp"
#include "sys/file.hpp"

namespace hanare::remote {

class BrokerClient final : public ChildConnector {
public:
    // `place` is what BrokerService::place() says.  Who does not seal what he puts is given no
    // connection that leaves that to him: PERMISSION.
    static Result<std::unique_ptr<BrokerClient>> open(const std::string& place,
                                                      const config::ServerAddress& server,
                                                      int timeout_ms, bool seals);

    // As TcpLink::connect().  One thread at a time.
    Result<std::unique_ptr<fabric::TcpLink>> connect(uint32_t spin_us);

    Result<std::unique_ptr<fabric::TcpLink>> connect_for_child() override;
    void finish_fork() noexcept override { childs_line_.close(); }
    void become_child() noexcept override;

private:
    BrokerClient(std::string address, uid_t user, const BrokerQuestion& question, int timeout_ms,
                 bool seals)
        : address_(std::move(address)),
          user_(user),
          question_(question),
          timeout_ms_(timeout_ms),
          seals_(seals) {}
    Result<void> open_line();
    Result<fabric::TcpLink::Connected> ask(bool wants_line);

    const std::string address_;
    const uid_t user_;
    sys::FileDescriptor line_;
    sys::FileDescriptor childs_line_;  // around a fork
    BrokerQuestion question_;
    const int timeout_ms_;
    const bool seals_;
};

}  // namespace hanare::remote
