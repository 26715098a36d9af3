// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <deque>
#include <optional>
#include <span>

#include "base/prng.hpp"
#include "bench/fabric_address.hpp"
#include "bench/fabric_case.hpp"
#include "bench/fabric_raw.hpp"
#include "bench/statistics.hpp"
#include "fabric/link.hpp"
#include "sys/clock.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::bench {
namespace {

constexpr int kConnectMs = 10'000;
constexpr double kNsPerUs = 1000;

// Where each operation of a round goes.
class Places {
public:
    Places(const FabricCase& which, uint64_t seed) : which_(which), prng_(seed) {}
    uint64_t next() {
        if (which_.action == FabricAction::kFetchAdd) return kFabricCounter;
        return prng_.below(kFabricDataBytes / which_.bytes) * which_.bytes;
    }

private:
    const FabricCase& which_;
    Prng prng_;
};

void fill(std::span<std::byte> data, uint64_t offset) {
    for (size_t i = 0; i < data.size(); i += sizeof(uint64_t)) {
        const uint64_t word = fabric_word(offset + i);
        std::memcpy(data.data() + i, &word, sizeof word);
    }
}

Result<void> check(std::span<const std::byte> data, uint64_t offset) {
    for (size_t i = 0; i < data.size(); i += sizeof(uint64_t)) {
        uint64_t word;
        std::memcpy(&word, data.data() + i, sizeof word);
        if (word == fabric_word(offset + i)) continue;
        return fail(HANARE_STATUS_INTERNAL, "wrong data at offset %" PRIu64, offset + i);
    }
    return {};
}

// What both systems do with a case; they differ in how an operation begins and how it ends.
class Source : public FabricSource {
public:
    Result<double> run(const FabricCase& which, uint64_t seed) override;

protected:
    struct Flight {
        uint64_t offset = 0;
        std::vector<std::byte> data;
        uint64_t value = 0;
    };
    virtual Result<void> begin(const FabricCase& which, size_t slot, Flight& flight) = 0;
    virtual Result<void> end(const FabricCase& which, size_t slot, Flight& flight) = 0;
};

Result<double> Source::run(const FabricCase& which, uint64_t seed) {
    Places places(which, seed);
    std::vector<Flight> flights(which.depth);
    std::vector<double> times;
    times.reserve(which.operations);
    for (Flight& flight : flights) flight.data.resize(which.bytes);
    std::vector<uint64_t> values;  // of fetch-ops
    const auto start = [&](size_t slot) {
        flights[slot].offset = places.next();
        if (which.action == FabricAction::kPut) fill(flights[slot].data, flights[slot].offset);
        return begin(which, slot, flights[slot]);
    };
    const uint64_t begin_ns = sys::now_ns();
    uint64_t before_ns = begin_ns;
    for (uint32_t i = 0; i < which.operations + which.depth; ++i) {
        const size_t slot = i % which.depth;
        if (i >= which.depth) {
            HANARE_TRY(end(which, slot, flights[slot]));
            if (which.action == FabricAction::kFetchAdd) values.push_back(flights[slot].value);
            const uint64_t now = sys::now_ns();
            times.push_back(static_cast<double>(now - before_ns));
        }
        if (i < which.operations) {
            // The checks of each 64th are not part of the time of one alone.
            if (i >= which.depth && which.action == FabricAction::kGet && i % 64 == 0) {
                HANARE_TRY(check(flights[slot].data, flights[slot].offset));
            }
            before_ns = sys::now_ns();
            HANARE_TRY(start(slot));
        }
    }
    const auto all_ns = static_cast<double>(sys::now_ns() - begin_ns);
    if (which.action == FabricAction::kGet) {
        HANARE_TRY(check(flights[0].data, flights[0].offset));
    } else if (which.action == FabricAction::kFetchAdd) {
        for (size_t i = 1; i < values.size(); ++i) {
            if (values[i] == values[i - 1] + 1) continue;
            return fail(HANARE_STATUS_INTERNAL, "the counter has missed an addition");
        }
    }
    if (which.depth > 1) return all_ns / which.operations / kNsPerUs;
    return summarize(times).median / kNsPerUs;
}

class HanareSource : public Source {
public:
    HanareSource(std::unique_ptr<fabric::Link> link, const fabric::Capability& capability)
        : capability_(capability), link_(std::move(link)) {}

protected:
    void prepare(const FabricCase& which, Flight& flight, fabric::Operation& call) const {
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
    Result<void> begin(const FabricCase& which, size_t slot, Flight& flight) override {
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
    Result<void> end(const FabricCase& which, size_t slot, Flight& flight) override {
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
        if (which.bytes > kQuickBytes || which.depth > 1) return HanareSource::run(which, seed);
        std::array<Flight, kTogether> flights;
        Places places(which, seed);
        std::vector<double> times;
        for (uint32_t done = 0; done < which.operations; done += kTogether) {
            std::array<fabric::Operation, kTogether> calls;
            for (size_t i = 0; i < kTogether; ++i) {
                flights[i].offset = places.next();
                flights[i].data.resize(which.bytes);
                if (which.action == FabricAction::kPut) fill(flights[i].data, flights[i].offset);
                prepare(which, flights[i], calls[i]);
            }
            const uint64_t begin_ns = sys::now_ns();
            for (fabric::Operation& call : calls) link().carry_out(call);
            times.push_back(static_cast<double>(sys::now_ns() - begin_ns) / kTogether);
            HANARE_TRY(check_all(which, calls, flights));
        }
        return summarize(times).median / kNsPerUs;
    }

private:
    static constexpr size_t kTogether = 64;
    static constexpr size_t kQuickBytes = 256;

    static Result<void> check_all(const FabricCase& which,
                                  const std::array<fabric::Operation, kTogether>& calls,
                                  const std::array<Flight, kTogether>& flights) {
        for (size_t i = 0; i < kTogether; ++i) {
            if (calls[i].status() != HANARE_STATUS_OK) {
                return fail(calls[i].status(), "%s: %s", which.name,
                            hanare_status_text(calls[i].status()));
            }
            if (which.action == FabricAction::kGet) {
                HANARE_TRY(check(flights[i].data, flights[i].offset));
            } else if (which.action == FabricAction::kFetchAdd && i > 0 &&
                       calls[i].value() != calls[i - 1].value() + 1) {
                return fail(HANARE_STATUS_INTERNAL, "the counter has missed an addition");
            }
        }
        return {};
    }
};

class RawSource : public Source {
public:
    explicit RawSource(sys::FileDescriptor socket) : socket_(std::move(socket)) {}

private:
    Result<void> begin(const FabricCase& which, size_t, Flight& flight) override {
        RawRequest request = {which.action, static_cast<uint32_t>(which.bytes), flight.offset};
        std::array<sys::Part, 2> parts = {
            {{reinterpret_cast<std::byte*>(&request), sizeof request}, {}}};
        if (which.action == FabricAction::kPut) parts[1] = {flight.data.data(), which.bytes};
        return all(parts, sys::send_parts);
    }
    Result<void> end(const FabricCase& which, size_t, Flight& flight) override {
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
                      sys::connect_tcp(kFabricHost, target.raw_port, kConnectMs));
    return std::make_unique<RawSource>(std::move(socket));
}

}  // namespace hanare::bench
