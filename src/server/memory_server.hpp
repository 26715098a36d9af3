// SPDX-License-Identifier: Apache-2.0
//
// MemoryServer: lends this machine's memory to clients over the fabric (DLM 2009, sections 2 and 3:
// memory servers of one program or of many; here one server does for both).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "fabric/handshake.hpp"
#include "fabric/secret.hpp"
#include "server/lease_table.hpp"

namespace hanare::server {

class MemoryServer {
public:
    struct Settings {
        std::string host = "127.0.0.1";  // a numeric address of this machine
        uint16_t port = 0;               // 0: one that is free
        uint64_t memory_bytes = 0;
        uint64_t quota_bytes = UINT64_MAX;  // of each lease
        bool wants_huge_pages = false;
        // Serves only who knows it.  Without, PERMISSION for other hosts than loopback.
        std::optional<fabric::Secret> secret = {};
        // Others with secrets of their own; not without the first one.
        struct Tenant {
            LeaseTable::Tenant settings;
            fabric::Secret secret;
        };
        std::vector<Tenant> tenants = {};
        // The least: as of TcpService, but off loopback kSealedButData by default, since what
        // clients put is sealed by itself.
        std::optional<fabric::Protection> protection = {};
        uint32_t spin_us = 0;
    };
    static Result<std::unique_ptr<MemoryServer>> open(const Settings& settings);
    ~MemoryServer();
    MemoryServer(const MemoryServer&) = delete;
    MemoryServer& operator=(const MemoryServer&) = delete;

    uint16_t port() const noexcept;
    // Serves with threads of its own, which have all signals blocked, until stop().
    Result<void> start();
    // Any thread.  All leases are over.
    void stop() noexcept;

    void drain() noexcept;
    LeaseTable::Status status() const;

private:
    struct State;
    explicit MemoryServer(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace hanare::server
