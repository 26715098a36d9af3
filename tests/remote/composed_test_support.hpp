// SPDX-License-Identifier: Apache-2.0
//
// What the tests of several stores as one share: memory servers in this process, and waiting for
// what happens in the background.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "base/units.hpp"
#include "config/options.hpp"
#include "config/store_spec.hpp"
#include "remote/open.hpp"
#include "server/memory_server.hpp"
#include "store/store.hpp"
#include "sys/clock.hpp"
#include "sys/lock.hpp"

namespace hanare::compose {

constexpr uint64_t kServerBytes = 128 * kMiB;
constexpr int kPatience_ms = 20'000;

using Servers = std::vector<std::unique_ptr<server::MemoryServer>>;

inline std::unique_ptr<server::MemoryServer> start_server(uint64_t bytes = kServerBytes) {
    auto server = server::MemoryServer::open({.memory_bytes = bytes}).value();
    EXPECT_TRUE(server->start());
    return server;
}

inline std::unique_ptr<store::Store> connect(const server::MemoryServer& server) {
    config::StoreSpec spec;
    spec.kind = config::StoreKind::kServer;
    spec.server = {"127.0.0.1", server.port()};
    config::Options options;
    options.server_timeout_ms = 3000;
    return remote::open_server_store(spec, options).value();
}

// Until it holds; false when it has not for very long.
template <typename Condition>
bool comes_true(Condition condition) {
    const uint64_t end_ns = sys::now_ns() + uint64_t{kPatience_ms} * 1'000'000;
    while (!condition()) {
        if (sys::now_ns() > end_ns) return false;
        sys::yield_for_us(1000);
    }
    return true;
}

}  // namespace hanare::compose
