// SPDX-License-Identifier: Apache-2.0
//
// A program or library that a linker has made: what is in it, and the change of its one segment.
#pragma once
#include <elf.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hanare::driver {

// The type that a segment of `dlm` arrays gets: the loader maps only PT_LOAD.
inline constexpr Elf64_Word kSegmentType = PT_LOOS + 0xd16d6c;

struct DataSymbol {
    std::string name;
    std::string section;
    uint64_t bytes;
};

struct ProgramFile {
    uint64_t dlm_bytes = 0;        // of .dlm
    bool has_loader = false;       // it is linked dynamically, and no library
    bool needs_library = false;    // libhanare.so
    std::vector<DataSymbol> data;  // variables, unless it is stripped
};

// nullopt: not ELF of 64 bits for x86-64, or damaged.
std::optional<ProgramFile> look_at_program(const std::string& path);

// Takes .dlm's segment out of what the loader maps.  An empty text, or why it cannot be.
std::string hide_segment(const std::string& path);

}  // namespace hanare::driver
