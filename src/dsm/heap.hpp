// SPDX-License-Identifier: Apache-2.0
//
// Heap: which ranges of the shared memory are allocated.  Task 0 has it, and answers the others.
// Nothing of it lies in the shared memory.  Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace hanare::dsm {

class Heap {
public:
    explicit Heap(uint64_t bytes) : free_{{0, bytes}} {}

    // The offset of a range, aligned to 64 bytes, from a page on to pages, so that what several
    // tasks allocate for themselves lies in blocks of its own.  Nothing: there is no such range.
    std::optional<uint64_t> allocate(uint64_t bytes);
    // Bytes of the range; nothing: there is none that begins there.
    std::optional<uint64_t> free(uint64_t offset);
    // Offsets and bytes of what is allocated now.
    std::vector<std::pair<uint64_t, uint64_t>> used();

private:
    std::mutex lock_;
    std::map<uint64_t, uint64_t> free_;  // under lock_; offset to bytes, neighbours are one
    std::map<uint64_t, uint64_t> used_;  // under lock_
};

}  // namespace hanare::dsm
