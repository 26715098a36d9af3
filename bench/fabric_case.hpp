// SPDX-License-Identifier: Apache-2.0
//
// The cases of `hanare bench fabric`: operations of one process on the memory of another, whose
// program sleeps.  The same cases run over the fabric and over sockets that are used by hand
// (`raw_tcp`: no headers in answers, no checks, both ends poll).  Used by one thread at each end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "fabric/capability.hpp"
#include "fabric/exposed_regions.hpp"

namespace hanare::bench {

enum class FabricAction : uint32_t { kGet, kPut, kFetchAdd };

struct FabricCase {
    const char* name;
    FabricAction action;
    size_t bytes;
    uint32_t depth;       // operations under way at a time
    uint32_t operations;  // in a round
};
const std::vector<FabricCase>& fabric_cases();
const FabricCase* find_fabric_case(std::string_view name);

// What the target exposes: words that are a function of their place, a page with one counter and
// what fabric_signal.hpp needs, and as much again that puts write.
inline constexpr size_t kFabricDataBytes = 16u << 20;
inline constexpr uint64_t kFabricCounter = kFabricDataBytes;
inline constexpr uint64_t kFabricPutBegin = kFabricDataBytes + 4096;
inline constexpr size_t kFabricRegionBytes = kFabricPutBegin + kFabricDataBytes;
uint64_t fabric_word(uint64_t offset);
// All pages are there afterwards.
void fill_fabric_region(std::span<std::byte> region);

// The target: a service of the fabric and a listener for raw connections.
class FabricTarget {
public:
    // At a numeric address of this machine.
    static Result<std::unique_ptr<FabricTarget>> open(const std::string& host);
    ~FabricTarget();
    FabricTarget(const FabricTarget&) = delete;
    FabricTarget& operator=(const FabricTarget&) = delete;

    // What the source has to know, as a line.
    std::string address() const;
    // Serves one raw connection, polling, until it is closed.
    Result<void> serve_raw();
    // For fabric_signal.hpp.
    fabric::ExposedRegions& regions() const;
    std::byte* memory() const;

private:
    struct State;
    explicit FabricTarget(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

// A source, connected.
class FabricSource {
public:
    virtual ~FabricSource() = default;

    // Microseconds of an operation: the median, or with several under way the mean.  INTERNAL when
    // something else came of it than what must.
    virtual Result<double> run(const FabricCase& which, uint64_t seed) = 0;
};

// How the fabric reaches the target.
enum class FabricEngine : uint32_t {
    kTcp,     // as it is; off loopback after a handshake
    kSecure,  // over TCP, in sealed frames
    kRing,    // through memory, to the target's thread
    kShm,     // by loads and stores
};
inline constexpr FabricEngine kFabricEngines[] = {FabricEngine::kTcp, FabricEngine::kSecure,
                                                  FabricEngine::kRing, FabricEngine::kShm};
const char* name_of(FabricEngine engine);
Result<std::unique_ptr<FabricSource>> connect_fabric(const std::string& address,
                                                     FabricEngine engine);
// The target has to be told to serve it.
Result<std::unique_ptr<FabricSource>> connect_raw(const std::string& address);

}  // namespace hanare::bench
