// SPDX-License-Identifier: Apache-2.0
//
// What a client asks a memory server, and what it is answered: the content of the fabric's calls,
// little-endian (docs/wire.md, "Memory servers").
//
// A lease is a client's claim on memory of a server: extents, each exposed as a region of the
// fabric, whose capabilities the client gets.  It ends when it is told to, or with the last
// connection that has opened or joined it, so that the memory of who dies is free at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "fabric/capability.hpp"
#include "fabric/operation.hpp"

namespace hanare::lease {

inline constexpr uint16_t kMessageVersion = 1;
// Extents are multiples of this, and begin at such addresses: a block lies in one extent.
inline constexpr uint64_t kExtentAlignmentBytes = uint64_t{4} << 20;
inline constexpr size_t kExtentsMax = 256;  // of a lease
inline constexpr size_t kClientNameBytes = 32;
inline constexpr size_t kTenantNameBytes = 16;

enum class Ask : uint16_t {
    kOpen = 1,     // a new lease, without any memory; `client` is its name for people
    kJoin = 2,     // the connection is one more that keeps `lease`
    kGrow = 3,     // `lease` is to have `bytes` at least; answered by its extents from `first`
    kExtents = 4,  // the same without growing
    kEnd = 5,      // `lease` is over, for all its connections
    kStatus = 6,   // answered by the leases from the `first`th on
    kDrain = 7,    // no new leases, no growth from now on; answers say so (kDraining)
    kFence = 8,    // the connections of members in `bytes` (a bit for each) are over
};

// Processes that share a lease are members of it, as far as they say so when their connections join
// it (`first`, from 1; 0: of none).  What one that has died had under way must not arrive when
// others use its place: who takes that over fences it first.  When kFence is answered, its
// connections are closed, and nothing that they have sent takes effect any more.
inline constexpr uint32_t kMembersMax = 64;

// Who has the key has the lease.
struct LeaseId {
    uint64_t number = 0;
    fabric::Key key;
};

struct Question {
    uint16_t version = kMessageVersion;
    Ask what = Ask::kStatus;
    uint32_t first = 0;
    LeaseId lease = {};
    uint64_t bytes = 0;
    char client[kClientNameBytes] = {};  // of printable ASCII, zeros behind it
};
static_assert(sizeof(Question) == 72);

// Whether a question of this version makes sense, as far as that can be told from itself.
bool is_sound(const Question& question) noexcept;

enum AnswerFlag : uint16_t {
    kDraining = 1,
};

struct Answer {
    uint16_t version = kMessageVersion;
    uint16_t flags = 0;
    uint32_t count = 0;         // of extents or rows that follow
    uint64_t server = 0;        // another one after each start
    LeaseId lease = {};         // of an open
    uint64_t leased_bytes = 0;  // of the lease; of a status, by all
    uint64_t free_bytes = 0;    // that this lease could get; of a status, of the server
    uint64_t total_bytes = 0;   // of the server
    uint64_t extents = 0;       // of the lease; of a status, leases
};
static_assert(sizeof(Answer) == 72);

// Extents of a lease have the order in which it got them, and never change.
struct Extent {
    fabric::Capability capability;  // to read and write; offsets from 0
    uint64_t bytes = 0;
};
static_assert(sizeof(Extent) == 40);

struct StatusRow {
    uint64_t number = 0;
    uint64_t bytes = 0;
    uint32_t connections = 0;
    uint32_t age_s = 0;
    char client[kClientNameBytes] = {};
    char tenant[kTenantNameBytes] = {};  // zeros behind it; empty: whose server it is
};
static_assert(sizeof(StatusRow) == 72);

inline constexpr size_t kExtentsPerAnswer =
    (fabric::kMessageBytesMax - sizeof(Answer)) / sizeof(Extent);
inline constexpr size_t kRowsPerAnswer =
    (fabric::kMessageBytesMax - sizeof(Answer)) / sizeof(StatusRow);

// Statuses of answers, besides the fabric's:
//   kOpen    LIMIT: too many leases; BUSY: the server is draining
//   kDrain   PERMISSION: of a tenant
//   kGrow    STORE_FULL: not enough memory that is free, or that the client may have; the lease
//            keeps what it had; BUSY: it will be enough shortly, ask again; LIMIT: too many extents
//   kJoin    LIMIT: the connection keeps too many leases, or the lease has too many connections of
//            members
//   all that name a lease: NOT_FOUND: there is no such lease (or its key is another)
//   INVALID_ARGUMENT: a question that is none; NOT_SUPPORTED: of another version

}  // namespace hanare::lease
