// SPDX-License-Identifier: Apache-2.0
//
// Engine shared: a region lies in a file of memory (memfd), which other processes can map for
// reading (view.hpp).  A mapped block is in the file, everything else of the file is holes: so what
// another process finds there is the block, whole pages of it, and never something that is being
// filled.  Blocks come by UFFDIO_COPY, which adds pages to the file and maps them in one step,
// write-protected unless the fault was a write, or by UFFDIO_ZEROPAGE, and go by protection, a copy
// back into the slot unless they are clean and not kept, and a hole punched in the file.
//
// The kernel may take pages of a file out of a mapping (reclaim), and another process may create
// some in a hole by reading past the guard of a view.  Both are faults here as well (MINOR): the
// former are mapped again, the latter never become content.
#pragma once

#include "pager/fault/userfault_engine.hpp"

namespace hanare::pager {

class Shared final : public UserfaultEngine {
public:
    using UserfaultEngine::UserfaultEngine;

    const char* name() const noexcept override { return "shared"; }
    bool shares_regions() const noexcept override { return true; }
    bool copies() const noexcept override { return true; }
    int attach(std::byte* range, size_t bytes) noexcept override;
    int attach_arena(std::byte*, size_t) noexcept override { return 0; }
    // Pages of slots come and go; the kernel provides them, as zeros, when they are touched.
    int populate(std::byte*, size_t) noexcept override { return 0; }
    int install_writable(std::byte* block, std::byte* slot, size_t bytes,
                         FilePlace place) noexcept override;
    bool installs_zeros() const noexcept override { return true; }
    int install_zeros(std::byte* block, std::byte* slot, size_t bytes,
                      FilePlace place) noexcept override;
    int install_read_only(std::byte* block, std::byte* slot, size_t bytes,
                          bool* written) noexcept override;
    int discard(std::byte* block, size_t bytes) noexcept override;
    int allow_writes(std::byte* block, size_t bytes) noexcept override;
    int withdraw(std::byte* block, std::byte* slot, size_t bytes,
                 FilePlace place) noexcept override;
    int map_again(std::byte* block, size_t bytes, bool* writable) noexcept override;
    // Parts are written back from the region, where a page may be unmapped at any time.
    bool serves_parts() const noexcept override { return false; }
    int drop(std::byte* range, size_t bytes) noexcept override;

private:
    template <typename Step>
    int fill_pages(std::byte* block, size_t* done, Step step) noexcept;
    int copy_in(std::byte* block, const std::byte* slot, size_t bytes, bool write_protected,
                size_t* done) noexcept;
    void take_back(std::byte* block, std::byte* slot, size_t bytes, FilePlace place) noexcept;
};

}  // namespace hanare::pager
