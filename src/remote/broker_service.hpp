// SPDX-License-Identifier: Apache-2.0
//
// BrokerService: makes connections to memory servers for the programs below this process, which
// know neither the secret nor the handshake.  Who has the token, from the environment, is served,
// whatever user it is.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "fabric/secret.hpp"

namespace hanare::remote {

class BrokerService {
public:
    struct Settings {
        std::optional<fabric::Secret> secret = {};
        int timeout_ms = 3000;  // of each connection
    };
    static Result<std::unique_ptr<BrokerService>> open(const Settings& settings);
    // Ends the thread.
    ~BrokerService();
    BrokerService(const BrokerService&) = delete;
    BrokerService& operator=(const BrokerService&) = delete;

    // For the environment of programs: "ADDRESS USER TOKEN".
    const std::string& place() const noexcept;
    // Serves by a thread of its own, which has all signals blocked.  Once.
    Result<void> start();

private:
    struct State;
    explicit BrokerService(std::unique_ptr<State> state);
    const std::unique_ptr<State> state_;
};

}  // namespace hanare::remote
