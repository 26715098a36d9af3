// SPDX-License-Identifier: Apache-2.0
//
// What `raw_tcp` says over its sockets: the least that does the same work.  Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "bench/fabric_case.hpp"
#include "sys/file.hpp"

namespace hanare::bench {

struct RawRequest {
    FabricAction action = FabricAction::kGet;
    uint32_t bytes = 0;  // a put's follow
    uint64_t offset = 0;
};
// A get is answered by its data, a put and a fetch-op by a word.

// The target's side, polling, until the source closes.  What comes with a request, up to a page, is
// received with it, the rest of a put where it belongs.
Result<void> serve_raw(const sys::FileDescriptor& socket, std::span<std::byte> memory);

}  // namespace hanare::bench
