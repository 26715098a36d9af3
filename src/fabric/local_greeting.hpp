// SPDX-License-Identifier: Apache-2.0
//
// How processes of one user on one machine meet: over a Unix socket the source says what it wants,
// and the target answers with descriptors.  It can have a connection, through memory that both have
// then (transport.hpp), or a region that it has a capability for.  The kernel says whose process is
// at the other end; no secret is needed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "fabric/exposed_regions.hpp"
#include "fabric/transport.hpp"
#include "sys/file.hpp"
#include "sys/memory.hpp"

namespace hanare::fabric {

// What is said, in this order of bytes.
struct LocalRequest {
    static constexpr uint32_t kMagic = 0x31524e48;  // "HNR1"
    enum class What : uint32_t { kConnection = 1, kRegion = 2 };

    uint32_t magic = kMagic;
    What what = What::kConnection;
    Capability capability;  // of a region
};
static_assert(sizeof(LocalRequest) == 40);

// With the descriptors of the rings and of the RegionPage, or with that of the region, or none.
struct LocalAnswer {
    uint32_t magic = LocalRequest::kMagic;
    int32_t status = 0;
    uint64_t address = 0;  // of the region, in the target; of a connection: place_in_space()
    uint64_t bytes = 0;
};
static_assert(sizeof(LocalAnswer) == 24);

// The target's side: one socket, from its beginning until it is clear what it is.  By one thread,
// never waits.
class LocalGreeting {
public:
    LocalGreeting(sys::FileDescriptor socket, ExposedRegions& regions) noexcept
        : socket_(std::move(socket)), regions_(regions) {}

    int descriptor() const noexcept { return socket_.number(); }
    enum class Outcome {
        kWaits,      // for more
        kConnected,  // take_transport()
        kOver,       // has got what it wanted, or nothing
    };
    Outcome go_on() noexcept;
    std::unique_ptr<Transport> take_transport() noexcept { return std::move(transport_); }

private:
    Outcome connect();
    Outcome give_region();

    sys::FileDescriptor socket_;
    ExposedRegions& regions_;
    LocalRequest request_;
    size_t come_bytes_ = 0;
    std::unique_ptr<Transport> transport_;
};

// A target whose memory is this process's, too.
struct Neighbour {
    task::Directory* directory = nullptr;  // null: it is none
    uint32_t self = 0;
    uint32_t task = 0;
    uint32_t process = 0;
    const ExposedRegions* regions = nullptr;
};

// The source's side of a connection.
struct LocalConnection {
    std::unique_ptr<Transport> transport;
    sys::Mapping page;  // RegionPage, for reading
    int process = 0;    // the target; 0: its numbers mean nothing, or something else, here
    Neighbour neighbour;
};
// PEER_LOST: nobody listens there; TIMEOUT.
Result<LocalConnection> connect_locally(const std::string& address, int timeout_ms);

// The source's side of a region.  By one thread at a time; async-signal-safe.
class RegionRequest {
public:
    // 0 or an errno value.
    int begin(const std::string& address, const Capability& capability) noexcept;
    // Whether there is an answer, or none to be hoped for.  Never waits.
    bool is_answered() noexcept;
    // Once it is.  Not OK: it has no descriptor, and is over.
    hanare_status status() const noexcept { return static_cast<hanare_status>(answer_.status); }
    const LocalAnswer& answer() const noexcept { return answer_; }
    sys::FileDescriptor take_file() noexcept { return std::move(file_); }

private:
    sys::FileDescriptor socket_;
    sys::FileDescriptor file_;
    LocalAnswer answer_;
    size_t come_bytes_ = 0;
};

}  // namespace hanare::fabric
