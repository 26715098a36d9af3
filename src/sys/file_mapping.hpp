// SPDX-License-Identifier: Apache-2.0
//
// Shared mappings of files through the page cache (what benchmarks compare with), and advice about
// huge pages.  Objects are used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.hpp"
#include "sys/memory.hpp"

namespace hanare::sys {

// Owns a read-write MAP_SHARED mapping.
class FileMapping {
public:
    // Maps bytes of `file` from `offset`; all are multiples of the OS page, as is `alignment`, a
    // power of two.
    static Result<FileMapping> create(int file, uint64_t offset, size_t bytes, size_t alignment);

    std::byte* address() const { return range_.address(); }
    // MADV_SEQUENTIAL for all of it.
    Result<void> expect_sequential();

private:
    explicit FileMapping(Mapping range) : range_(std::move(range)) {}

    Mapping range_;  // the address space, over which the file is mapped
};

// Asks for, or forbids, transparent huge pages.  A kernel without them ignores it.
void advise_huge_pages(const Mapping& mapping, bool wanted) noexcept;

}  // namespace hanare::sys
