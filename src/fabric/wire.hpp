// SPDX-License-Identifier: Apache-2.0
//
// What goes over a connection, in little-endian order: requests from the source, each a header and
// what a put carries; answers from the target in the order of the requests, each a header and what
// a get brings.  docs/wire.md is the specification.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "fabric/operation.hpp"

namespace hanare::fabric {

static_assert(std::endian::native == std::endian::little);

inline constexpr uint8_t kWireVersion = 1;
// What a request may carry or ask for; larger operations are several requests.
inline constexpr uint32_t kRequestBytesMax = 256 * 1024;

// In the width of a fetch-op: who sleeps until the word changes is woken.
inline constexpr uint8_t kWakes = 0x80;

struct RequestHeader {
    uint8_t version = kWireVersion;
    Kind kind = Kind::kPut;
    FetchOp fetch_op = FetchOp::kAdd;
    uint8_t width = 0;      // of the word; kWakes or'ed
    uint32_t bytes = 0;     // of the range or message; of a pop those that there is room for
    uint32_t sequence = 0;  // number of the request on this connection, from 0, modulo 2^32
    uint32_t check = 0;     // CRC-32C of the header, with 0 here
    Capability capability = {};
    uint64_t offset = 0;
    uint64_t operand = 0;  // of a call: bytes that there is room for in the answer
    uint64_t compare = 0;
};
static_assert(sizeof(RequestHeader) == 72);

struct AnswerHeader {
    uint8_t version = kWireVersion;
    Kind kind = Kind::kPut;
    int16_t status = 0;
    uint32_t bytes = 0;  // of what follows: what a get, pop or call that succeeded brings, else 0
    uint64_t value = 0;  // of a fetch-op the word before, of a pop or call those of what it brings
    uint32_t sequence = 0;
    uint32_t check = 0;
};
static_assert(sizeof(AnswerHeader) == 24);

template <typename Header>
void seal(Header& header) noexcept;
// Whether it is whole and of this version.
template <typename Header>
bool is_sealed(const Header& header) noexcept;

// Whether a request that is whole makes sense; otherwise the connection is of no more use.
bool is_plausible(const RequestHeader& header) noexcept;
// Whether an answer may say so.
bool is_known_status(int16_t status) noexcept;
// Puts up to here are applied when they have come as a whole.
inline constexpr uint32_t kSmallBytes = 1024;
// Whether what such a request carries or brings is data in the sense of Protection.
inline bool is_data(Kind kind, uint32_t bytes) noexcept {
    return (kind == Kind::kPut || kind == Kind::kGet) && bytes > kSmallBytes;
}
// What follows a request.
inline uint32_t carried_bytes(const RequestHeader& header) noexcept {
    const bool carries = header.kind == Kind::kPut || header.kind == Kind::kPush ||
                         header.kind == Kind::kSignal || header.kind == Kind::kCall;
    return carries ? header.bytes : 0;
}
// What follows its answer, at most.
inline uint32_t brought_bytes_max(const RequestHeader& header) noexcept {
    switch (header.kind) {
        case Kind::kGet:
        case Kind::kPop: return header.bytes;
        case Kind::kCall: return static_cast<uint32_t>(header.operand);
        default: return 0;
    }
}

}  // namespace hanare::fabric
