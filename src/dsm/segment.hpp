// SPDX-License-Identifier: Apache-2.0
//
// Segment: the memory that tasks share, as one of them has it: a range of addresses that is the
// same in all, and a file of memory (memfd) behind it, which a second view maps as well.  The
// program uses the first view, where accesses may be caught; this library uses the second, the
// alias, which never faults, so that what peers bring is complete before it can be seen.
//
// Setting up is for one ordinary thread; the addresses are for any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.hpp"
#include "sys/file.hpp"
#include "sys/memory.hpp"

namespace hanare::dsm {

inline constexpr uint32_t kBlockBytes = 4096;  // the unit of coherence, an OS page

class Segment {
public:
    Segment() = default;

    // Takes the addresses; NO_MEMORY: something is mapped there.
    static Result<Segment> reserve(std::byte* address, size_t bytes);
    // Both views show the file from now on, which is as long.
    Result<void> show(sys::FileDescriptor file);

    std::byte* base() const noexcept { return program_.address(); }
    size_t bytes() const noexcept { return program_.bytes(); }
    uint32_t blocks() const noexcept { return static_cast<uint32_t>(bytes() / kBlockBytes); }

    bool contains(const void* address) const noexcept {
        const auto* const byte = static_cast<const std::byte*>(address);
        return byte >= base() && byte < base() + bytes();
    }
    uint32_t block_of(const void* address) const noexcept {
        return static_cast<uint32_t>((static_cast<const std::byte*>(address) - base()) /
                                     kBlockBytes);
    }
    std::byte* view(uint32_t block) const noexcept { return base() + size_t{block} * kBlockBytes; }
    std::byte* alias(uint32_t block) const noexcept {
        return alias_.address() + size_t{block} * kBlockBytes;
    }

private:
    sys::Mapping program_;
    sys::Mapping alias_;
    sys::FileDescriptor file_;
};

}  // namespace hanare::dsm
