// SPDX-License-Identifier: Apache-2.0
//
// Engine sigbus-copy: for kernels without UFFDIO_MOVE (before 6.8).  Blocks are mapped by
// UFFDIO_COPY, write-protected in the same step when they are read, so clean tracking is exact
// without comparing; they are unmapped by write protection, a copy back into the slot and
// MADV_DONTNEED.
#pragma once

#include "pager/fault/userfault_engine.hpp"

namespace hanare::pager {

// What all engines that copy do.
class CopyingEngine : public UserfaultEngine {
public:
    using UserfaultEngine::UserfaultEngine;

    int attach_arena(std::byte*, size_t) noexcept override { return 0; }
    // Pages of slots come and go; the kernel provides them, as zeros, when they are touched.
    int populate(std::byte*, size_t) noexcept override { return 0; }
    bool copies() const noexcept override { return true; }
    int install_writable(std::byte* block, std::byte* slot, size_t bytes,
                         FilePlace place) noexcept override;
    int install_read_only(std::byte* block, std::byte* slot, size_t bytes,
                          bool* written) noexcept override;
    int withdraw(std::byte* block, std::byte* slot, size_t bytes,
                 FilePlace place) noexcept override;

protected:
    ~CopyingEngine() = default;

private:
    int copy_in(std::byte* block, std::byte* slot, size_t bytes, bool write_protected) noexcept;
};

class SigbusCopy final : public CopyingEngine {
public:
    using CopyingEngine::CopyingEngine;
    const char* name() const noexcept override { return "sigbus-copy"; }
};

}  // namespace hanare::pager
