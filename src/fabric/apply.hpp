// SPDX-License-Identifier: Apache-2.0
//
// What the operations do to memory, for all engines.  Ranges of 4 or 8 bytes that are aligned to
// their size are read and written as one word: nobody sees half of it.  Async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "fabric/exposed_regions.hpp"
#include "fabric/operation.hpp"

namespace hanare::fabric {

void copy_words(std::byte* to, const std::byte* from, size_t bytes) noexcept;

// `before` is the word as it was.  `word` is aligned to `width`, which is 4 or 8.
void fetch_op(std::byte* word, FetchOp op, uint8_t width, uint64_t operand, uint64_t compare,
              uint64_t& before) noexcept;

// What of the region's memory the operation is about, and the right that it needs there.
Rights rights_for(Kind kind) noexcept;
uint64_t offset_in(const Operation& operation) noexcept;
uint64_t bytes_in(const Operation& operation) noexcept;

// The operation on a region whose check it has passed, and what value it has.  A queue belongs to
// process `owner`.  The status is the caller's to note.
hanare_status apply_to(std::span<std::byte> region, int owner, Operation& operation) noexcept;

// All of an operation on regions of this process, check and value.
hanare_status apply(ExposedRegions& regions, Operation& operation) noexcept;

// The same of one request.
struct FetchRequest {
    FetchOp op = FetchOp::kAdd;
    uint8_t width = 0;
    bool wakes = false;
    uint64_t operand = 0;
    uint64_t compare = 0;
};
hanare_status apply_put(ExposedRegions& regions, const Capability& capability, uint64_t offset,
                        std::span<const std::byte> source) noexcept;
// INVALID_ARGUMENT: not aligned.
hanare_status apply_fetch(ExposedRegions& regions, const Capability& capability, uint64_t offset,
                          const FetchRequest& request, uint64_t& before) noexcept;
// On regions that are queues (fifo.hpp, for `patience_ns` too); their statuses as well.
hanare_status apply_push(ExposedRegions& regions, const Capability& capability,
                         std::span<const std::byte> message, uint64_t patience_ns) noexcept;
hanare_status apply_signal(ExposedRegions& regions, const Capability& capability,
                           std::span<const std::byte> message, uint64_t patience_ns) noexcept;
hanare_status apply_pop(ExposedRegions& regions, const Capability& capability,
                        std::span<std::byte> room, size_t& bytes, uint64_t patience_ns) noexcept;

}  // namespace hanare::fabric
