// SPDX-License-Identifier: Apache-2.0
//
// The machine code of one ELF module (x86-64, as ld.so maps it or as it lies in a file) and where
// its functions begin, from the table that serves unwinding (.eh_frame_hdr).  Reads the module
// only; neither allocates nor locks.  Valid as long as the module, or the file's bytes, stay
// mapped.
#pragma once

#include <link.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace hanare::hook {

using Code = std::span<const uint8_t>;

class CodeImage {
public:
    // A module that is mapped as its program headers say.
    static CodeImage of_loaded(const dl_phdr_info& module) noexcept;

    // The whole of an ELF file in memory; nothing where it is no x86-64 ELF file.  `code()` lies
    // in `file` then.
    static std::optional<CodeImage> of_file(std::span<const uint8_t> file) noexcept;

    // The executable segments that are not writable.  Bytes that are not code (tables, padding) may
    // be among them.
    std::span<const Code> code() const noexcept { return {segments_.data(), segment_count_}; }

    // What lies around `place`, which is in code(), and begins and ends where instructions do: a
    // function, or what is between two.  The whole segment where the module has no usable table;
    // nothing where that says that it is hardly code.
    Code function_around(const uint8_t* place) const noexcept;

    // Whether that is code to which the kernel returns from a signal handler.  Unwinders know it by
    // its bytes, and glibc says that it begins a byte before its first instruction.
    bool is_signal_trampoline(const uint8_t* place) const noexcept;

private:
    // One row of the table: distances from the table's beginning.
    struct Entry {
        int32_t function;
        int32_t description;
    };
    // An address of the ELF file, and where that is in memory.
    struct Segment {
        uint64_t address;
        std::span<const uint8_t> bytes;
    };
    class Builder;

    uint64_t address_of(const uint8_t* place) const noexcept;
    const uint8_t* place_of(uint64_t address) const noexcept;
    Code segment_around(const uint8_t* place) const noexcept;
    // The number of functions that begin at or before the address; the last of these is the one
    // that it is in, or behind.
    size_t functions_until(uint64_t address) const noexcept;
    uint64_t function_start(size_t index) const noexcept;
    uint64_t description_of(size_t index) const noexcept;
    uint64_t function_end(size_t index) const noexcept;
    void read_table(uint64_t address) noexcept;

    static constexpr size_t kSegmentsMax = 16;
    std::array<Segment, kSegmentsMax> all_ = {};
    std::array<Code, kSegmentsMax> segments_ = {};
    size_t all_count_ = 0;
    size_t segment_count_ = 0;
    uint64_t table_address_ = 0;
    std::span<const Entry> table_;
};

}  // namespace hanare::hook
