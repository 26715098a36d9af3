// SPDX-License-Identifier: Apache-2.0
//
// What `raw_tcp` says over its sockets: the least that does the same work.
#pragma once

#include <cstdint>

#include "bench/fabric_case.hpp"

namespace hanare::bench {

struct RawRequest {
    FabricAction action = FabricAction::kGet;
    uint32_t bytes = 0;  // a put's follow
    uint64_t offset = 0;
};
// A get is answered by its data, a put and a fetch-op by a word.

}  // namespace hanare::bench
