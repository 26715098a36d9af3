// SPDX-License-Identifier: Apache-2.0
//
// Where the memory of a region is, for who draws a picture of it, and how much there is.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "pager/fault/region.hpp"

namespace hanare::pager {

// The addresses of a region of adopted memory as far as they were ever used, in as many equal parts
// as the spans have places: of each how much is in local memory, and how much is kept anywhere, of
// 255.  Blocks change meanwhile, and of many only some are looked at: hints.  Returns how many
// bytes the parts are of.  Any thread, fault handlers included.
uint64_t note_whereabouts(const Region& region, std::span<std::atomic<uint8_t>> local,
                          std::span<std::atomic<uint8_t>> kept) noexcept;

// How much of such a region holds something, in local memory or in the store; an estimate where it
// has very many blocks.  As above.
uint64_t used_bytes(const Region& region) noexcept;

}  // namespace hanare::pager
