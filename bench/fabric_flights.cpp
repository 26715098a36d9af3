// SPDX-License-Identifier: Apache-2.0
#include "bench/fabric_flights.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "bench/statistics.hpp"
#include "sys/clock.hpp"

namespace hanare::bench {
namespace {

constexpr double kNsPerUs = 1000;
// The data of each such get is checked, outside of its time.
constexpr uint32_t kCheckedOneIn = 64;

uint64_t mixed(uint64_t seed, uint64_t number) {
    uint64_t state = seed << 32 ^ number;
    return splitmix64(state);
}

}  // namespace

uint64_t FabricPlaces::next() {
    if (which_.action == FabricAction::kFetchAdd) return kFabricCounter;
    const size_t step = std::max(which_.bytes, sizeof(uint64_t));
    const uint64_t begin = which_.action == FabricAction::kPut ? kFabricPutBegin : 0;
    return begin + prng_.below(kFabricDataBytes / step) * step;
}

void prepare_put(std::span<std::byte> data, uint64_t seed, size_t slot) {
    Prng prng(mixed(seed, slot));
    for (size_t i = 0; i < data.size(); i += sizeof(uint64_t)) {
        const uint64_t word = prng.next();
        std::memcpy(data.data() + i, &word, std::min(sizeof word, data.size() - i));
    }
}

void number_put(std::span<std::byte> data, uint64_t seed, uint64_t number) {
    const uint64_t word = mixed(~seed, number);
    std::memcpy(data.data(), &word, std::min(sizeof word, data.size()));
}

Result<void> check_got(std::span<const std::byte> data, uint64_t offset) {
    for (size_t i = 0; i < data.size(); i += sizeof(uint64_t)) {
        uint64_t word;
        std::memcpy(&word, data.data() + i, sizeof word);
        if (word == fabric_word(offset + i)) continue;
        return fail(HANARE_STATUS_INTERNAL, "wrong data at offset %" PRIu64, offset + i);
    }
    return {};
}

Result<void> FlightSource::start(const FabricCase& which, uint64_t seed, uint32_t number,
                                 FabricPlaces& places) {
    const size_t slot = number % which.depth;
    FabricFlight& flight = flights_[slot];
    flight.offset = places.next();
    if (which.action == FabricAction::kPut) number_put(flight.data, seed, number);
    return begin(which, slot, flight);
}

Result<double> FlightSource::run(const FabricCase& which, uint64_t seed) {
    FabricPlaces places(which, seed);
    flights_.assign(which.depth, {});
    values_.clear();
    for (size_t slot = 0; slot < which.depth; ++slot) {
        flights_[slot].data.resize(which.bytes);
        if (which.action == FabricAction::kPut) prepare_put(flights_[slot].data, seed, slot);
    }
    std::vector<double> times;
    times.reserve(which.operations);
    const uint64_t begin_ns = sys::now_ns();
    uint64_t before_ns = begin_ns;
    for (uint32_t i = 0; i < which.operations + which.depth; ++i) {
        FabricFlight& flight = flights_[i % which.depth];
        if (i >= which.depth) {
            HANARE_TRY(end(which, i % which.depth, flight));
            if (which.action == FabricAction::kFetchAdd) values_.push_back(flight.value);
            times.push_back(static_cast<double>(sys::now_ns() - before_ns));
        }
        if (i < which.operations) {
            if (i >= which.depth && which.action == FabricAction::kGet && i % kCheckedOneIn == 0) {
                HANARE_TRY(check_got(flight.data, flight.offset));
            }
            before_ns = sys::now_ns();
            HANARE_TRY(start(which, seed, i, places));
        }
    }
    const auto all_ns = static_cast<double>(sys::now_ns() - begin_ns);
    HANARE_TRY(check_all(which));
    if (which.depth > 1) return all_ns / which.operations / kNsPerUs;
    return summarize(times).median / kNsPerUs;
}

Result<void> FlightSource::check_all(const FabricCase& which) {
    const FabricFlight& last = flights_[(which.operations - 1) % which.depth];
    switch (which.action) {
        case FabricAction::kGet: return check_got(last.data, last.offset);
        case FabricAction::kPut: return check_put(which, last);
        case FabricAction::kFetchAdd: break;
    }
    for (size_t i = 1; i < values_.size(); ++i) {
        if (values_[i] == values_[i - 1] + 1) continue;
        return fail(HANARE_STATUS_INTERNAL, "the counter has missed an addition");
    }
    return {};
}

Result<void> FlightSource::check_put(const FabricCase& which, const FabricFlight& put) {
    const FabricCase back = {which.name, FabricAction::kGet, which.bytes, 1, 1};
    FabricFlight got;
    got.offset = put.offset;
    got.data.resize(which.bytes);
    HANARE_TRY(begin(back, 0, got));
    HANARE_TRY(end(back, 0, got));
    if (got.data == put.data) return {};
    return fail(HANARE_STATUS_INTERNAL, "%s: a put is not there at offset %" PRIu64, which.name,
                put.offset);
}

}  // namespace hanare::bench
