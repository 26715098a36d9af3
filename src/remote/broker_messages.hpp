// SPDX-License-Identifier: Apache-2.0
//
// What a program and its broker say to each other over a local socket: one question, one answer,
// each a message as a whole.  A broker makes connections to memory servers for programs that do not
// know the secret, and should not have to load what the handshake needs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "fabric/handshake.hpp"

namespace hanare::remote {

inline constexpr uint32_t kBrokerVersion = 2;
inline constexpr size_t kBrokerTokenBytes = 32;  // hexadecimal digits

struct BrokerQuestion {
    uint32_t version = kBrokerVersion;
    uint16_t port = 0;
    // Whether another local socket, for a child, is wanted besides.
    uint16_t wants_line = 0;
    std::array<char, kBrokerTokenBytes> token = {};
    std::array<char, 256> host = {};  // a name or an address, zeros behind it
};

// The connection's socket comes with it, and then the local one.
struct BrokerAnswer {
    uint32_t version = kBrokerVersion;
    int32_t status = 0;
    uint32_t is_sealed = 0;  // by `keys`
    uint32_t leaves_data = 0;
    fabric::SessionKeys keys = {};
    std::array<char, 256> text = {};  // why there is none
};

static_assert(std::is_standard_layout_v<BrokerQuestion> && std::is_standard_layout_v<BrokerAnswer>);

}  // namespace hanare::remote
