// SPDX-License-Identifier: Apache-2.0
#include "server/memory_server.hpp"

#include <mutex>
#include <system_error>
#include <thread>

#include "fabric/tcp_service.hpp"
#include "sys/signal.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::server {
namespace {

std::vector<LeaseTable::Tenant> tenants_of(const MemoryServer::Settings& settings) {
    std::vector<LeaseTable::Tenant> tenants;
    for (const auto& each : settings.tenants) tenants.push_back(each.settings);
    return tenants;
}

std::vector<fabric::Secret> secrets_of(const MemoryServer::Settings& settings) {
    std::vector<fabric::Secret> secrets;
    for (const auto& each : settings.tenants) secrets.push_back(each.secret);
    return secrets;
}

std::optional<fabric::Protection> protection_of(const MemoryServer::Settings& settings) {
    if (settings.protection || sys::is_loopback(settings.host)) return settings.protection;
    return fabric::Protection::kSealedButData;
}

}  // namespace

// In the order in which each needs what is above it.
struct MemoryServer::State {
    State(const Settings& settings, std::unique_ptr<Arena> memory)
        : arena(std::move(memory)),
          leases({.quota_bytes = settings.quota_bytes, .tenants = tenants_of(settings)}, *arena,
                 regions) {}

    const std::unique_ptr<Arena> arena;
    fabric::ExposedRegions regions;
    LeaseTable leases;
    std::unique_ptr<fabric::TcpService> service;  // null once it has been stopped
    uint16_t port = 0;

    std::mutex lock;  // starting and stopping
    bool was_started = false;
    bool was_stopped = false;
    std::thread serving;
    std::thread wiping;
};

Result<std::unique_ptr<MemoryServer>> MemoryServer::open(const Settings& settings) {
    HANARE_TRY_ASSIGN(auto arena, Arena::open({.bytes = settings.memory_bytes,
                                               .wants_huge_pages = settings.wants_huge_pages}));
    auto state = std::make_unique<State>(settings, std::move(arena));
    HANARE_TRY_ASSIGN(state->service,
                      fabric::TcpService::open({.host = settings.host,
                                                .port = settings.port,
                                                .secret = settings.secret,
                                                .more_secrets = secrets_of(settings),
                                                .protection = protection_of(settings),
                                                .spin_us = settings.spin_us,
                                                .calls = &state->leases},
                                               state->regions));
    state->port = state->service->port();
    return std::unique_ptr<MemoryServer>(new MemoryServer(std::move(state)));
}

MemoryServer::MemoryServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

MemoryServer::~MemoryServer() { stop(); }

uint16_t MemoryServer::port() const noexcept { return state_->port; }

Result<void> MemoryServer::start() {
    const std::lock_guard guard(state_->lock);
    if (state_->was_started || state_->was_stopped) {
        return fail(HANARE_STATUS_BUSY, "a memory server is started once");
    }
    state_->was_started = true;
    // The process's signals are for its other threads.
    const sys::SignalBlock blocked;
    try {
        state_->wiping = std::thread([this] { state_->arena->run(); });
        state_->serving = std::thread([this] { state_->service->run(); });
    } catch (const std::system_error& error) {
        return fail_errno(HANARE_STATUS_SYSTEM, error.code().value(), "cannot start a thread");
    }
    return {};
}

void MemoryServer::stop() noexcept {
    const std::lock_guard guard(state_->lock);
    if (state_->was_stopped) return;
    state_->was_stopped = true;
    state_->service->stop();
    if (state_->serving.joinable()) state_->serving.join();
    // With the connections, leases end.
    state_->service.reset();
    state_->arena->stop();
    if (state_->wiping.joinable()) state_->wiping.join();
}

void MemoryServer::drain() noexcept { state_->leases.drain(); }

LeaseTable::Status MemoryServer::status() const { return state_->leases.status(); }

}  // namespace hanare::server
