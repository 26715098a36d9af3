// SPDX-License-Identifier: Apache-2.0
//
// The memories that benchmarks compare: plain anonymous memory (which is also kernel swap, when
// swap is on and a cgroup limits it), a shared mapping of a file, and Hanare's far memory.
// An object owns what it allocates; used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "hanare/stats.h"
#include "sys/file_mapping.hpp"

namespace hanare::bench {

// Arrays of plain and file memory start at a multiple of this: enough for huge pages.
inline constexpr size_t kArrayAlignment = 2u << 20;

class Memory {
public:
    virtual ~Memory() = default;
    // Zero-filled, aligned to the OS page at least.  Lives as long as this object.
    virtual Result<double*> allocate(size_t bytes) = 0;
    // Ends the array that begins there and allocates it anew, of the same size.
    virtual Result<double*> allocate_again(double* array) = 0;
    // What was written is where absent memory lives.  Nothing to do for anonymous memory.
    virtual Result<void> flush() = 0;
    // Makes as much of it absent as the system lets.  Only after flush().
    virtual Result<void> drop() = 0;
    // Whether the kernel is told of the order of accesses; it is, from the start.
    virtual Result<void> use_advice(bool wanted) = 0;
    // Hanare's counters since the start, block_bytes that of the first array; for the others all
    // zero.
    virtual Result<hanare_counters> counters() = 0;
};

struct HanareMemoryOptions {
    uint64_t local_bytes = 0;
    std::string store;
    uint64_t block_bytes = 0;
    std::string engine;
    uint32_t read_ahead_blocks = 0;  // 0 for none
    std::string replacement = {};    // empty for the default
};

// `huge_pages`: as the system's setting has it, never, or asked for.
enum class HugePages { kSystem, kNever, kAsked };
std::unique_ptr<Memory> plain_memory(HugePages huge_pages);

// A nameless file in `directory`, allocated on disk before use, as a store's is.
Result<std::unique_ptr<Memory>> file_memory(const std::string& directory, sys::AccessOrder advice);

Result<std::unique_ptr<Memory>> hanare_memory(const HanareMemoryOptions& options);

// Touches and gives back that much memory, in single and in huge pages, so that what runs next
// finds it ready whichever it asks for.  In a virtual machine the first touch of memory that the
// host had taken back costs many times the usual.
Result<void> warm_memory(uint64_t bytes);

// "always", "madvise" or "never"; "unknown" where the kernel does not say.
std::string transparent_huge_page_mode();

}  // namespace hanare::bench
