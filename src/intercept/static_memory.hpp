// SPDX-License-Identifier: Apache-2.0
//
// .bss of the executable, or its `dlm` arrays where these are larger: the whole blocks of it (C
// statics, Fortran COMMON).  Before it is taken over, what was already written there, mostly by
// ld.so, is put aside, and put back afterwards. While the process has one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "sys/memory.hpp"

namespace hanare::intercept {

// What hanare-cc calls the segment of `dlm` arrays (compiler/driver/program_file.hpp), which the
// program has mapped by itself before we begin.
inline constexpr uint32_t kDlmSegment = 0x60000000 + 0xd16d6c;

class StaticMemory {
public:
    static StaticMemory of_executable(uint64_t block_bytes);

    std::byte* begin() const noexcept { return begin_; }
    size_t bytes() const noexcept { return bytes_; }  // 0: there is none

    class Content {
    public:
        void put_back() const noexcept;

    private:
        friend class StaticMemory;
        std::vector<std::byte*> pages_;
        sys::Mapping copies_;
    };
    // Afterwards no page is there, unless it fails.
    Result<Content> take_content() const;

private:
    std::byte* begin_ = nullptr;
    size_t bytes_ = 0;
};

}  // namespace hanare::intercept
