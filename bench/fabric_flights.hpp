// SPDX-License-Identifier: Apache-2.0
//
// What all systems do with a case of `hanare bench fabric`, and what is checked of it; they differ
// in how an operation begins and how it ends.  Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/prng.hpp"
#include "bench/fabric_case.hpp"

namespace hanare::bench {

// Where each operation of a round goes.
class FabricPlaces {
public:
    FabricPlaces(const FabricCase& which, uint64_t seed) : which_(which), prng_(seed) {}
    uint64_t next();

private:
    const FabricCase& which_;
    Prng prng_;
};

// An operation under way.
struct FabricFlight {
    uint64_t offset = 0;
    std::vector<std::byte> data;
    uint64_t value = 0;  // of a fetch-op
};

// What puts carry: random bytes, different in each round, and in front of them the number of the
// put, so that what is there afterwards can only come from the last one.
void prepare_put(std::span<std::byte> data, uint64_t seed, size_t slot);
void number_put(std::span<std::byte> data, uint64_t seed, uint64_t number);

// What a get has brought.
Result<void> check_got(std::span<const std::byte> data, uint64_t offset);

class FlightSource : public FabricSource {
public:
    Result<double> run(const FabricCase& which, uint64_t seed) override;

protected:
    // At most as many as the case's depth at a time; they end in the order in which they began.
    virtual Result<void> begin(const FabricCase& which, size_t slot, FabricFlight& flight) = 0;
    virtual Result<void> end(const FabricCase& which, size_t slot, FabricFlight& flight) = 0;

    // The put is the last one that has been done there.
    Result<void> check_put(const FabricCase& which, const FabricFlight& put);

private:
    Result<void> start(const FabricCase& which, uint64_t seed, uint32_t number,
                       FabricPlaces& places);
    Result<void> check_all(const FabricCase& which);

    std::vector<FabricFlight> flights_;
    std::vector<uint64_t> values_;  // of fetch-ops
};

}  // namespace hanare::bench
