// SPDX-License-Identifier: Apache-2.0
//
// The checks of `hanare bench fabric`: a source whose target is memory of this process, with one
// thing wrong at a time.
#include "bench/fabric_flights.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace hanare::bench {
namespace {

enum class Fault { kNone, kPutIsLost, kPutIsCut, kOldPut, kGetIsWrong, kAdditionIsLost };

class MemorySource : public FlightSource {
public:
    explicit MemorySource(Fault fault) : fault_(fault), memory_(kFabricRegionBytes) {
        fill_fabric_region(memory_);
    }

private:
    Result<void> begin(const FabricCase& which, size_t, FabricFlight& flight) override {
        std::byte* const place = memory_.data() + flight.offset;
        ++operations_;
        switch (which.action) {
            case FabricAction::kGet:
                std::memcpy(flight.data.data(), place, which.bytes);
                if (fault_ == Fault::kGetIsWrong) flight.data.back() ^= std::byte{1};
                break;
            case FabricAction::kPut: put(place, flight); break;
            case FabricAction::kFetchAdd: add(place, flight); break;
        }
        return {};
    }
    Result<void> end(const FabricCase&, size_t, FabricFlight&) override { return {}; }

    void put(std::byte* place, const FabricFlight& flight) {
        size_t bytes = flight.data.size();
        if (fault_ == Fault::kPutIsLost) return;
        if (fault_ == Fault::kPutIsCut) --bytes;
        if (fault_ == Fault::kOldPut && operations_ > 1) return;
        std::memcpy(place, flight.data.data(), bytes);
    }
    void add(std::byte* place, FabricFlight& flight) {
        std::memcpy(&flight.value, place, sizeof flight.value);
        const uint64_t sum = flight.value + 1;
        if (fault_ != Fault::kAdditionIsLost || operations_ != 3) {
            std::memcpy(place, &sum, sizeof sum);
        }
    }

    const Fault fault_;
    std::vector<std::byte> memory_;
    uint64_t operations_ = 0;
};

bool passes(Fault fault, FabricAction action, size_t bytes, uint32_t depth = 1) {
    MemorySource source(fault);
    const FabricCase which = {"test", action, bytes, depth, 100};
    const Result<double> first = source.run(which, 1);
    const Result<double> second = source.run(which, 2);
    for (const Result<double>* result : {&first, &second}) {
        if (!*result) {
            EXPECT_EQ(result->error().status, HANARE_STATUS_INTERNAL);
        }
    }
    return first && second;
}

TEST(FabricFlights, WhatIsRightPasses) {
    for (const uint32_t depth : {1u, 8u}) {
        for (size_t bytes = 4; bytes <= 1u << 20; bytes *= 4) {
            EXPECT_TRUE(passes(Fault::kNone, FabricAction::kPut, bytes, depth)) << bytes;
        }
        EXPECT_TRUE(passes(Fault::kNone, FabricAction::kGet, 64, depth));
        EXPECT_TRUE(passes(Fault::kNone, FabricAction::kGet, 1u << 16, depth));
    }
    EXPECT_TRUE(passes(Fault::kNone, FabricAction::kFetchAdd, 8));
}

TEST(FabricFlights, WhatIsWrongDoesNot) {
    for (const uint32_t depth : {1u, 8u}) {
        for (const size_t bytes : {4u, 64u, 1u << 16}) {
            EXPECT_FALSE(passes(Fault::kPutIsLost, FabricAction::kPut, bytes, depth)) << bytes;
            EXPECT_FALSE(passes(Fault::kPutIsCut, FabricAction::kPut, bytes, depth)) << bytes;
            EXPECT_FALSE(passes(Fault::kOldPut, FabricAction::kPut, bytes, depth)) << bytes;
        }
        EXPECT_FALSE(passes(Fault::kGetIsWrong, FabricAction::kGet, 64, depth));
    }
    EXPECT_FALSE(passes(Fault::kAdditionIsLost, FabricAction::kFetchAdd, 8));
}

}  // namespace
}  // namespace hanare::bench
