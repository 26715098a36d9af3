// SPDX-License-Identifier: Apache-2.0
//
// Card: what a task publishes so that the others can reach it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "job/control_memory.hpp"

namespace hanare::job {

struct Card {
    std::string host;  // a numeric address
    uint16_t port = 0;
    // Where tasks of the same machine reach it; empty: as the others do.
    std::string local_address;
    ControlKeys control;
    fabric::Capability ucx;  // the card of UCX; of no rights: it is not used

    // LIMIT: the host's name is too long for a card.
    Result<std::vector<std::byte>> bytes() const;
    // NOT_SUPPORTED: of another version; CORRUPT: no card.
    static Result<Card> parse(std::span<const std::byte> bytes);
};

}  // namespace hanare::job
