// SPDX-License-Identifier: Apache-2.0
#include <cinttypes>
#include <cstdio>
#include <optional>
#include <thread>
#include <unistd.h>

#include "base/units.hpp"
#include "bench/fabric_case.hpp"
#include "bench/fabric_raw.hpp"
#include "bench/table.hpp"
#include "fabric/tcp_service.hpp"
#include "sys/memory.hpp"
#include "sys/shared_memory.hpp"
#include "sys/signal.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::bench {
namespace {

constexpr uint32_t kSpinUs = 50;
constexpr int kPatienceMs = 10'000;

std::string local_address() { return "@hanare-bench-fabric-" + std::to_string(getpid()); }

}  // namespace

struct FabricTarget::State {
    std::string host;
    sys::Mapping memory;
    fabric::ExposedRegions regions;
    fabric::Capability capability;
    std::optional<fabric::Secret> secret;
    std::unique_ptr<fabric::TcpService> service;
    std::unique_ptr<fabric::TcpService> secure_service;
    sys::FileDescriptor raw_listener;
    uint16_t raw_port = 0;
    std::thread thread;
    std::thread secure_thread;
};

FabricTarget::FabricTarget(std::unique_ptr<State> state) : state_(std::move(state)) {}

FabricTarget::~FabricTarget() {
    state_->service->stop();
    state_->secure_service->stop();
    state_->thread.join();
    state_->secure_thread.join();
}

Result<std::unique_ptr<FabricTarget>> FabricTarget::open(const std::string& host) {
    auto state = std::make_unique<State>();
    state->host = host;
    constexpr fabric::Rights kRights = fabric::kRead | fabric::kWrite | fabric::kAtomic;
    HANARE_TRY_ASSIGN(sys::FileDescriptor file, sys::create_shared_memory(kFabricRegionBytes));
    HANARE_TRY_ASSIGN(state->memory, sys::Mapping::reserve(kFabricRegionBytes, kOsPageBytes));
    HANARE_TRY(sys::map_shared(state->memory, file));
    fill_fabric_region({state->memory.address(), kFabricRegionBytes});
    HANARE_TRY_ASSIGN(const uint32_t region,
                      state->regions.expose({state->memory.address(), kFabricRegionBytes}, kRights,
                                            std::move(file)));
    HANARE_TRY_ASSIGN(state->capability, state->regions.capability(region, kRights));
    HANARE_TRY_ASSIGN(state->secret, fabric::Secret::make());
    fabric::TcpService::Settings plain = {
        .host = host, .port = 0, .local_address = local_address(), .spin_us = kSpinUs};
    if (!sys::is_loopback(host)) {
        plain.secret = state->secret;
        plain.protection = fabric::Protection::kAuthenticated;
    }
    HANARE_TRY_ASSIGN(state->service, fabric::TcpService::open(plain, state->regions));
    HANARE_TRY_ASSIGN(state->secure_service,
                      fabric::TcpService::open(
                          {.host = host, .port = 0, .secret = state->secret, .spin_us = kSpinUs},
                          state->regions));
    HANARE_TRY_ASSIGN(state->raw_listener, sys::listen_tcp(host, 0));
    HANARE_TRY_ASSIGN(state->raw_port, sys::port_of(state->raw_listener));
    const sys::SignalBlock not_for_the_thread;
    state->thread = std::thread([service = state->service.get()] { service->run(); });
    state->secure_thread = std::thread([service = state->secure_service.get()] { service->run(); });
    return std::unique_ptr<FabricTarget>(new FabricTarget(std::move(state)));
}

std::string FabricTarget::address() const {
    const fabric::Capability& key = state_->capability;
    return format("%s %u %u %u %u %u %u %" PRIu64 " %" PRIu64 " %s %s", state_->host.c_str(),
                  state_->service->port(), state_->secure_service->port(), state_->raw_port,
                  key.region, key.epoch, key.rights, key.key.words[0], key.key.words[1],
                  local_address().c_str(), state_->secret->text().c_str());
}

fabric::ExposedRegions& FabricTarget::regions() const { return state_->regions; }

std::byte* FabricTarget::memory() const { return state_->memory.address(); }

Result<void> FabricTarget::serve_raw() {
    sys::wait_for_socket(state_->raw_listener.number(), {.to_read = true}, kPatienceMs);
    const sys::FileDescriptor socket = sys::accept_tcp(state_->raw_listener);
    if (!socket.is_open()) return fail(HANARE_STATUS_TIMEOUT, "nobody has connected");
    return bench::serve_raw(socket, {state_->memory.address(), kFabricRegionBytes});
}

}  // namespace hanare::bench
