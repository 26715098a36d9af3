// SPDX-License-Identifier: Apache-2.0
//
// Shared mappings of files through the page cache (what benchmarks compare with), and what the
// kernel is told about mappings: huge pages, order of access, what to put away.  Objects are used
// by one thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.hpp"
#include "sys/memory.hpp"

namespace hanare::sys {

// The order of accesses that the kernel is told of: MADV_NORMAL, MADV_SEQUENTIAL, MADV_RANDOM.
enum class AccessOrder { kUnknown, kSequential, kRandom };

// Owns a read-write MAP_SHARED mapping.
class FileMapping {
public:
    // Maps bytes of `file` from `offset`; all are multiples of the OS page, as is `alignment`, a
    // power of two.
    static Result<FileMapping> create(int file, uint64_t offset, size_t bytes, size_t alignment);

    std::byte* address() const { return range_.address(); }
    // For all of it.
    Result<void> expect(AccessOrder order);
    // Returns when what was written is in the file.
    Result<void> flush();
    // Forgets the pages.  What was written and not flushed stays in the page cache.
    Result<void> unload();

private:
    explicit FileMapping(Mapping range) : range_(std::move(range)) {}

    Mapping range_;  // the address space, over which the file is mapped
};

// Takes pages of the file that are neither mapped nor dirty out of the page cache.
Result<void> drop_cached_pages(int file);

// Asks the kernel to move the pages of the mapping to swap.
Result<void> page_out(const Mapping& mapping);

// Asks for, or forbids, transparent huge pages.  A kernel without them ignores it.
void advise_huge_pages(const Mapping& mapping, bool wanted) noexcept;

}  // namespace hanare::sys
