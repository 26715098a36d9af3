// SPDX-License-Identifier: Apache-2.0
//
// A memory server in a process of its own, which ends with the test.  Made before the test has
// threads.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.hpp"
#include "fabric/secret.hpp"

namespace hanare::test {

class ServerProcess {
public:
    explicit ServerProcess(uint64_t memory_bytes, uint16_t port = 0,
                           const std::optional<fabric::Secret>& secret = {});
    ~ServerProcess();
    ServerProcess(const ServerProcess&) = delete;
    ServerProcess& operator=(const ServerProcess&) = delete;

    uint16_t port() const { return port_; }
    std::string spec() const { return "tcp://127.0.0.1:" + std::to_string(port_); }
    void send(int signal_number) const;
    // As a crash would.
    void kill();

private:
    pid_t pid_ = -1;
    uint16_t port_ = 0;
};

}  // namespace hanare::test
