// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
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

constexpr const char* kHost = "127.0.0.1";
constexpr uint32_t kSpinUs = 50;
constexpr int kPatienceMs = 10'000;

void fill(const sys::Mapping& memory) {
    auto* const words = reinterpret_cast<uint64_t*>(memory.address());
    for (size_t i = 0; i < kFabricDataBytes / sizeof(uint64_t); ++i) {
        words[i] = fabric_word(i * sizeof(uint64_t));
    }
}

std::string local_address() { return "@hanare-bench-fabric-" + std::to_string(getpid()); }

// All of it, polling.  False: the peer has closed, or sends no more.
bool transfer(int socket, sys::Part part, decltype(&sys::send_parts) move) {
    while (part.bytes > 0) {
        const ptrdiff_t moved = move(socket, {&part, 1});
        if (moved == -EAGAIN) continue;
        if (moved <= 0) return false;
        part.address += moved;
        part.bytes -= static_cast<size_t>(moved);
    }
    return true;
}

}  // namespace

struct FabricTarget::State {
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

Result<std::unique_ptr<FabricTarget>> FabricTarget::open() {
    auto state = std::make_unique<State>();
    constexpr fabric::Rights kRights = fabric::kRead | fabric::kWrite | fabric::kAtomic;
    HANARE_TRY_ASSIGN(sys::FileDescriptor file, sys::create_shared_memory(kFabricRegionBytes));
    HANARE_TRY_ASSIGN(state->memory, sys::Mapping::reserve(kFabricRegionBytes, kOsPageBytes));
    HANARE_TRY(sys::map_shared(state->memory, file));
    fill(state->memory);
    HANARE_TRY_ASSIGN(const uint32_t region,
                      state->regions.expose({state->memory.address(), kFabricRegionBytes}, kRights,
                                            std::move(file)));
    HANARE_TRY_ASSIGN(state->capability, state->regions.capability(region, kRights));
    HANARE_TRY_ASSIGN(
        state->service,
        fabric::TcpService::open(
            {.host = kHost, .port = 0, .local_address = local_address(), .spin_us = kSpinUs},
            state->regions));
    HANARE_TRY_ASSIGN(state->secret, fabric::Secret::make());
    HANARE_TRY_ASSIGN(state->secure_service,
                      fabric::TcpService::open(
                          {.host = kHost, .port = 0, .secret = state->secret, .spin_us = kSpinUs},
                          state->regions));
    HANARE_TRY_ASSIGN(state->raw_listener, sys::listen_tcp(kHost, 0));
    HANARE_TRY_ASSIGN(state->raw_port, sys::port_of(state->raw_listener));
    const sys::SignalBlock not_for_the_thread;
    state->thread = std::thread([service = state->service.get()] { service->run(); });
    state->secure_thread = std::thread([service = state->secure_service.get()] { service->run(); });
    return std::unique_ptr<FabricTarget>(new FabricTarget(std::move(state)));
}

std::string FabricTarget::address() const {
    const fabric::Capability& key = state_->capability;
    return format("%u %u %u %u %u %u %" PRIu64 " %" PRIu64 " %s %s", state_->service->port(),
                  state_->secure_service->port(), state_->raw_port, key.region, key.epoch,
                  key.rights, key.key.words[0], key.key.words[1], local_address().c_str(),
                  state_->secret->text().c_str());
}

fabric::ExposedRegions& FabricTarget::regions() const { return state_->regions; }

std::byte* FabricTarget::memory() const { return state_->memory.address(); }

Result<void> FabricTarget::serve_raw() {
    sys::wait_for_socket(state_->raw_listener.number(), {.to_read = true}, kPatienceMs);
    const sys::FileDescriptor socket = sys::accept_tcp(state_->raw_listener);
    if (!socket.is_open()) return fail(HANARE_STATUS_TIMEOUT, "nobody has connected");
    std::byte* const memory = state_->memory.address();
    RawRequest request;
    const sys::Part of_request = {reinterpret_cast<std::byte*>(&request), sizeof request};
    while (transfer(socket.number(), of_request, sys::receive_parts)) {
        if (request.bytes > kFabricRegionBytes ||
            request.offset > kFabricRegionBytes - request.bytes) {
            return fail(HANARE_STATUS_INTERNAL, "a raw request beyond the region");
        }
        std::byte* const place = memory + request.offset;
        uint64_t word = 0;
        sys::Part answer = {reinterpret_cast<std::byte*>(&word), sizeof word};
        switch (request.action) {
            case FabricAction::kGet: answer = {place, request.bytes}; break;
            case FabricAction::kPut:
                transfer(socket.number(), {place, request.bytes}, sys::receive_parts);
                break;
            case FabricAction::kFetchAdd:
                word = __atomic_fetch_add(reinterpret_cast<uint64_t*>(place), 1, __ATOMIC_SEQ_CST);
                break;
        }
        transfer(socket.number(), answer, sys::send_parts);
    }
    return {};
}

}  // namespace hanare::bench
