// SPDX-License-Identifier: Apache-2.0
//
// Anonymous mappings.  Nothing here touches the mapped memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/result.hpp"

namespace hanare::sys {

// Owns an anonymous, no-reserve, read-write mapping, private but for reserve_shared().  Movable;
// unmaps itself.
class Mapping {
public:
    Mapping() = default;
    // `bytes` and `alignment` are multiples of the OS page; alignment is a power of two.
    static Result<Mapping> reserve(size_t bytes, size_t alignment);
    // The same memory for all who inherit it by fork, zero at first.
    static Result<Mapping> reserve_shared(size_t bytes);
    // At that address, where nothing is mapped: NO_MEMORY otherwise.
    static Result<Mapping> reserve_at(std::byte* address, size_t bytes);
    // Owns from now on what somebody else has mapped.
    static Mapping take_over(std::byte* address, size_t bytes) noexcept { return {address, bytes}; }

    Mapping(Mapping&& other) noexcept
        : address_(std::exchange(other.address_, nullptr)),
          bytes_(std::exchange(other.bytes_, 0)) {}
    Mapping& operator=(Mapping&& other) noexcept {
        std::swap(address_, other.address_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~Mapping();

    std::byte* address() const { return address_; }
    size_t bytes() const { return bytes_; }

    // Replaces the mapping by a fresh one at the same place, page tables included (the kernel gives
    // huge pages only where there are none).  Returns 0 or an errno value.  Async-signal-safe.
    int renew() const noexcept;

    // A child made by fork does not get it.  Without that it would find zeros where the store
    // has the content, and pages shared with it cannot be moved.
    Result<void> hide_from_children() const;

    // mlock(2): not swapped from now on.  Returns 0 or an errno value.
    int lock() const noexcept;

    // Advice values are MADV_*.  Returns 0 or an errno value.  Async-signal-safe.
    int advise(int advice) const noexcept;

private:
    Mapping(std::byte* address, size_t bytes) noexcept : address_(address), bytes_(bytes) {}

    std::byte* address_ = nullptr;
    size_t bytes_ = 0;
};

// Replaces [address, address + bytes) by fresh memory, private, readable and writable; whose pages
// are there at once if `populated`.  Returns 0 or an errno value.  Async-signal-safe.
int map_fresh(void* address, size_t bytes, bool populated) noexcept;

// madvise(2); returns 0 or an errno value, retrying EAGAIN and EINTR.  Async-signal-safe.
int advise(void* address, size_t bytes, int advice) noexcept;

// Whether some page of this machine's memory may be swapped out; false: none is.
// Async-signal-safe.
bool are_pages_swapped_out() noexcept;

struct MemoryRange {
    std::byte* address = nullptr;
    size_t bytes = 0;
};
// The same for each of up to 64 ranges; since Linux 6.16 with one interruption of the other
// processors for all of them.  Returns the first error after all have been tried.
// Async-signal-safe.
int advise_each(const MemoryRange* ranges, size_t count, int advice) noexcept;

// The pages are not there for this process any more; a file behind them keeps them.
// Async-signal-safe.
int unmap_pages(void* address, size_t bytes) noexcept;

// mprotect(2) with PROT_* values; returns 0 or an errno value.  Async-signal-safe.
int protect(void* address, size_t bytes, int protection) noexcept;

// Moves the pages of a private anonymous mapping, with its protection and flags, to `target`, whose
// mapping they replace.  In one step for running threads.  `source` stays mapped and is empty.
// Should the kernel give up after it has unmapped the target, that is mapped again, empty and with
// `protection`.  Returns 0 or an errno value.  Async-signal-safe.
int move_mapping(void* target, void* source, size_t bytes, int protection) noexcept;

// Replaces [address, address + bytes) by a mapping whose every access raises SIGSEGV and which
// takes no memory; neighbours of the kind become one with it.  Returns 0 or an errno value.
// Async-signal-safe.
int make_inaccessible(void* address, size_t bytes) noexcept;

// Replaces [address, address + bytes) by a mapping whose every access raises SIGBUS (a file of no
// length), or SIGSEGV where no descriptor is left.  Returns 0 or an errno value.
// Async-signal-safe.
int poison(void* address, size_t bytes) noexcept;

}  // namespace hanare::sys
