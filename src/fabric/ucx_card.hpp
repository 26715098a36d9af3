// SPDX-License-Identifier: Apache-2.0
//
// UcxCard: what a source finds in the memory of a target that serves over UCX, too: how its worker
// and its regions are reached.  It is a region like others, got over the base link first, and then
// read by UCX itself (docs/wire.md).  Who can read it can reach all memory that is in it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "fabric/crc32c.hpp"

namespace hanare::fabric {

struct UcxCard {
    static constexpr uint32_t kMagic = 0x55524e48;  // "HNRU"
    static constexpr uint32_t kVersion = 1;
    static constexpr uint32_t kAddressBytesMax = 2048;
    static constexpr uint32_t kEntries = 1024;  // for the regions with the lowest numbers

    // One region's memory.  Written only while its epoch is 0 in `epochs`.
    struct Entry {
        static constexpr uint32_t kKeyBytesMax = 224;

        uint32_t check = 0;  // CRC-32C of all, computed with 0 here
        uint32_t epoch = 0;  // 0: none
        uint64_t address = 0;
        uint64_t bytes = 0;
        uint32_t key_bytes = 0;
        uint32_t unused = 0;
        std::byte key[kKeyBytesMax] = {};
    };
    // Does not change.
    struct Header {
        uint32_t check = 0;  // CRC-32C of all, computed with 0 here
        uint32_t magic = kMagic;
        uint32_t version = kVersion;
        uint32_t address_bytes = 0;
        Entry card;
        std::byte address[kAddressBytesMax] = {};  // of the target's worker
    };
    static constexpr size_t kScratchWords = 8;

    Header header;
    // Sources that want the target to call UCX until they have connected, and those that have.
    alignas(64) std::atomic<uint32_t> wanted;
    std::atomic<uint32_t> served;
    // Odd while it calls UCX.
    std::atomic<uint64_t> calls;
    alignas(64) uint64_t scratch[kScratchWords];  // for sources to try UCX on
    // Of each region, 0 while it cannot be reached.
    alignas(64) std::atomic<uint32_t> epochs[kEntries];
    Entry entries[kEntries];
};
static_assert(sizeof(UcxCard::Entry) == 256);
static_assert(sizeof(UcxCard::Header) == 2320);
static_assert(offsetof(UcxCard, wanted) == 2368);
static_assert(offsetof(UcxCard, scratch) == 2432);
static_assert(offsetof(UcxCard, epochs) == 2496);
static_assert(offsetof(UcxCard, entries) == 6592);

// Of an Entry or a Header.
template <typename Part>
uint32_t check_of(Part part) noexcept {
    part.check = 0;
    return crc32c(0, reinterpret_cast<const std::byte*>(&part), sizeof part);
}

}  // namespace hanare::fabric
