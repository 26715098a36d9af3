// SPDX-License-Identifier: Apache-2.0
//
// BlockSeals: what makes a store's blocks unreadable and unforgeable for whoever keeps them.  The
// store's addresses are divided into units.  A unit is encrypted and authenticated (AES-256-GCM)
// before it leaves, and its tag stays here, with the version that it was written as: only what was
// written last, to this very place, opens again.  What was changed, moved or kept from earlier does
// not.  A server still sees which units come and go, and when; and it may lose them.
//
// The key is made here, and only children by fork get it, with a copy of the table.  A version is
// the nonce, so no two writes under the key may have the same one: sys/unique_numbers.hpp says why
// they have not, in whatever processes.  When there are no more versions, nothing is sealed.
//
// Any thread, async-signal-safe, but for make() and the end: nothing allocates or locks.  Different
// units are worked on at the same time; a unit by one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "fabric/aes_gcm.hpp"
#include "sys/sparse_memory.hpp"
#include "sys/unique_numbers.hpp"

namespace hanare::remote {

class BlockSeals {
public:
    static constexpr size_t kBytesPerUnit = 24;  // of memory, for units that were written
    static constexpr uint32_t kUnitBytesMin = 4u << 10;
    static constexpr uint32_t kUnitBytesMax = 64u << 10;

    // `unit_bytes` is a power of two; whatever is read or written is whole units.
    // NOT_SUPPORTED: the processor has no AES instructions; NO_MEMORY: no addresses for the table.
    // `first_version_range` is for tests, as in UniqueNumbers.
    static Result<std::unique_ptr<BlockSeals>> make(uint64_t store_bytes_max, uint32_t unit_bytes,
                                                    uint64_t first_version_range = 1);

    // `sealed` may be `plain`, and else does not overlap it.  False, with nothing changed: the
    // versions are used up, and it may not be written.
    //
    // The tag is replaced at once.  Where the write then fails or is never answered, the store may
    // hold the old content or the new one, and only the new one opens: the pager keeps a block in
    // memory until it is written, and writes it again.  That is another version, so that the first
    // write, should it arrive last, does not open.
    [[nodiscard]] bool seal(uint64_t offset, const std::byte* plain, std::byte* sealed,
                            size_t bytes) noexcept;

    // In place.  False: some unit is not what was written last; `data` is zeros then.
    //
    // What was never written is zeros, whatever has come: blocks of which a part was written are
    // read as a whole.
    [[nodiscard]] bool open(uint64_t offset, std::byte* data, size_t bytes) const noexcept;

    // As if these units had never been written.  Before the first use of what others may have
    // written since the last one, such as a slot of the store that was theirs since a fork.  Also
    // after a failed write, by who goes on with the store: a read of the whole block, in which the
    // pager replaces these units by what is in memory, must not fail because of them.
    void release(uint64_t offset, uint64_t bytes) noexcept;

private:
    struct Seal {
        uint64_t version;  // 0: never written
        std::array<std::byte, fabric::AesGcm::kTagBytes> tag;
    };
    static_assert(sizeof(Seal) == kBytesPerUnit);

    BlockSeals(fabric::AesGcm cipher, sys::UniqueNumbers versions, sys::SparseMemory table,
               uint32_t unit_bytes) noexcept;
    std::span<Seal> seals_of(uint64_t offset, uint64_t bytes) const noexcept;

    const fabric::AesGcm cipher_;
    sys::UniqueNumbers versions_;
    const sys::SparseMemory table_;
    const uint32_t unit_bytes_;
};

}  // namespace hanare::remote
