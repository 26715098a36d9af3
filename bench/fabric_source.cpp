// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <optional>
#include <span>

#include "base/units.hpp"
#include "bench/fabric_address.hpp"
#include "bench/fabric_case.hpp"
#include "bench/fabric_flights.hpp"
#include "bench/fabric_raw.hpp"
#include "bench/statistics.hpp"
#include "fabric/link.hpp"
#include "sys/clock.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::bench {
namespace {

constexpr int kConnectMs = 10'000;
constexpr double kNsPerUs = 1000;

class HanareSource : public FlightSource {
public:
    HanareSource(std::unique_ptr<fabric::Link> link, const fabric::Capability& capability)
        : capability_(capability), link_(std::move(link)) {}

protected:
    void prepare(const FabricCase& which, FabricFlight& flight, fabric::Operation& call) const {
        call.capability = capability_;
        call.offset = flight.offset;
        switch (which.action) {
            case FabricAction::kGet:
                call.kind = fabric::Kind::kGet;
                call.destination = flight.data;
                break;
            case FabricAction::kPut: call.source = flight.data; break;
            case FabricAction::kFetchAdd:
                call.kind = fabric::Kind::kFetch;
                call.operand = 1;
                break;
        }
    }
    fabric::Link& link() const { return *link_; }

private:
    Result<void> begin(const FabricCase& which, size_t slot, FabricFlight& flight) override {
        while (calls_.size() <= slot) calls_.emplace_back();
        calls_[slot].emplace();
        fabric::Operation& call = *calls_[slot];
        prepare(which, flight, call);
        if (which.depth == 1) {
            link_->carry_out(call);
        } else {
            link_->post(call);
        }
        return {};
    }
    Result<void> end(const FabricCase& which, size_t slot, FabricFlight& flight) override {
        const hanare_status status = link_->wait(*calls_[slot]);
        flight.value = calls_[slot]->value();
        if (status == HANARE_STATUS_OK) return {};
        return fail(status, "%s: %s", which.name, hanare_status_text(status));
    }

    const fabric::Capability capability_;
    std::deque<std::optional<fabric::Operation>> calls_;  // they cannot move
    const std::unique_ptr<fabric::Link> link_;            // ends first
};

// Operations that take less time than it takes to look at a clock: many between two looks.
class QuickSource : public HanareSource {
public:
    using HanareSource::HanareSource;
    Result<double> run(const FabricCase& which, uint64_t seed) override {
        HANARE_TRY(touch());
        if (which.bytes > kQuickBytes || which.depth > 1) return HanareSource::run(which, seed);
        std::array<FabricFlight, kTogether> flights;
        FabricPlaces places(which, seed);
        std::vector<double> times;
        for (size_t i = 0; i < kTogether; ++i) {
            flights[i].data.resize(which.bytes);
            if (which.action == FabricAction::kPut) prepare_put(flights[i].data, seed, i);
        }
        // Also of a short round the median is of what the caches hold.
        const uint32_t operations = std::max(which.operations, kOperationsMin);
        for (uint32_t done = 0; done < operations; done += kTogether) {
            std::array<fabric::Operation, kTogether> calls;
            for (size_t i = 0; i < kTogether; ++i) {
                flights[i].offset = places.next();
                if (which.action == FabricAction::kPut) {
                    number_put(flights[i].data, seed, done + i);
                }
                prepare(which, flights[i], calls[i]);
            }
            const uint64_t begin_ns = sys::now_ns();
            for (fabric::Operation& call : calls) link().carry_out(call);
            times.push_back(static_cast<double>(sys::now_ns() - begin_ns) / kTogether);
            HANARE_TRY(check_all(which, calls, flights));
            if (which.action == FabricAction::kPut) HANARE_TRY(check_put(which, flights.back()));
        }
        return summarize(times).median / kNsPerUs;
    }

private:
    static constexpr size_t kTogether = 64;
    static constexpr size_t kQuickBytes = 256;
    static constexpr uint32_t kOperationsMin = 5000;

    // The first access to each page maps it here, which is not what is measured.
    Result<void> touch() {
        if (is_touched_) return {};
        for (uint64_t page = 0; page < kFabricDataBytes; page += kOsPageBytes) {
            HANARE_TRY(touch_page(FabricAction::kGet, page));
            HANARE_TRY(touch_page(FabricAction::kPut, kFabricPutBegin + page));
        }
        is_touched_ = true;
        return {};
    }
    Result<void> touch_page(FabricAction action, uint64_t offset) {
        const FabricCase once = {"touch", action, sizeof(uint64_t), 1, 1};
        FabricFlight flight;
        flight.offset = offset;
        flight.data.resize(once.bytes);
        fabric::Operation call;
        prepare(once, flight, call);
        const hanare_status status = link().carry_out(call);
        if (status == HANARE_STATUS_OK) return {};
        return fail(status, "a page of the target: %s", hanare_status_text(status));
    }

    static Result<void> check_all(const FabricCase& which,
                                  const std::array<fabric::Operation, kTogether>& calls,
                                  const std::array<FabricFlight, kTogether>& flights) {
        for (size_t i = 0; i < kTogether; ++i) {
            if (calls[i].status() != HANARE_STATUS_OK) {
                return fail(calls[i].status(), "%s: %s", which.name,
                            hanare_status_text(calls[i].status()));
            }
            if (which.action == FabricAction::kGet) {
                HANARE_TRY(check_got(flights[i].data, flights[i].offset));
            } else if (which.action == FabricAction::kFetchAdd && i > 0 &&
                       calls[i].value() != calls[i - 1].value() + 1) {
                return fail(HANARE_STATUS_INTERNAL, "the counter has missed an addition");
            }
        }
        return {};
    }

    bool is_touched_ = false;
};

class RawSource : public FlightSource {
public:
    explicit RawSource(sys::FileDescriptor socket) : socket_(std::move(socket)) {}

private:
    Result<void> begin(const FabricCase& which, size_t, FabricFlight& flight) override {
        RawRequest request = {which.action, static_cast<uint32_t>(which.bytes), flight.offset};
        std::array<sys::Part, 2> parts = {
            {{reinterpret_cast<std::byte*>(&request), sizeof request}, {}}};
        if (which.action == FabricAction::kPut) parts[1] = {flight.data.data(), which.bytes};
        return all(parts, sys::send_parts);
    }
    Result<void> end(const FabricCase& which, size_t, FabricFlight& flight) override {
        std::array<sys::Part, 2> parts = {
            {{reinterpret_cast<std::byte*>(&flight.value), sizeof flight.value}, {}}};
        if (which.action == FabricAction::kGet) parts[0] = {flight.data.data(), which.bytes};
        return all(parts, sys::receive_parts);
    }
    // Polling.
    Result<void> all(std::array<sys::Part, 2> parts, decltype(&sys::send_parts) move) {
        size_t left = parts[0].bytes + parts[1].bytes;
        while (left > 0) {
            const ptrdiff_t result = move(socket_.number(), parts);
            if (result == -EAGAIN) continue;
            if (result <= 0) return fail(HANARE_STATUS_PEER_LOST, "the raw target is gone");
            auto moved = static_cast<size_t>(result);
            left -= moved;
            for (sys::Part& part : parts) {
                const size_t bytes = std::min(moved, part.bytes);
                part = {part.address + bytes, part.bytes - bytes};
                moved -= bytes;
            }
        }
        return {};
    }

    const sys::FileDescriptor socket_;
};

}  // namespace

Result<std::unique_ptr<FabricSource>> connect_fabric(const std::string& address,
                                                     FabricEngine engine) {
    HANARE_TRY_ASSIGN(const FabricAddress target, parse_address(address));
    HANARE_TRY_ASSIGN(auto link, connect_by(target, engine));
    if (engine == FabricEngine::kShm) {
        return std::make_unique<QuickSource>(std::move(link), target.capability);
    }
    return std::make_unique<HanareSource>(std::move(link), target.capability);
}

Result<std::unique_ptr<FabricSource>> connect_raw(const std::string& address) {
    HANARE_TRY_ASSIGN(const FabricAddress target, parse_address(address));
    HANARE_TRY_ASSIGN(sys::FileDescriptor socket,
                      sys::connect_tcp(target.host, target.raw_port, kConnectMs));
    return std::make_unique<RawSource>(std::move(socket));
}

}  // namespace hanare::bench
