// SPDX-License-Identifier: Apache-2.0
//
// Engine sigbus-copy: for kernels without UFFDIO_MOVE (before 6.8).  Blocks are mapped by
// UFFDIO_COPY, write-protected in the same step when they are read, so clean tracking is exact
// without comparing; they are unmapped by write protection, a copy back into the slot and
// MADV_DONTNEED.  The side that was copied from gives its pages back, so a block occupies memory
// once.
#include <cerrno>
#include <cstring>
#include <sys/mman.h>

#include "pager/fault/engine.hpp"
#include "sys/memory.hpp"
#include "sys/uffd.hpp"

namespace hanare::pager {

namespace {

class SigbusCopy final : public Engine {
public:
    explicit SigbusCopy(sys::Userfault userfault) : userfault_(std::move(userfault)) {}

    const char* name() const noexcept override { return "sigbus-copy"; }

    int attach(std::byte* range, size_t bytes) noexcept override {
        return userfault_.register_range(range, bytes);
    }

    int attach_arena(std::byte*, size_t) noexcept override { return 0; }

    // Pages of slots come and go; the kernel provides them, as zeros, when they are touched.
    int populate(std::byte*, size_t) noexcept override { return 0; }

    int install_writable(std::byte* block, std::byte* slot, size_t bytes) noexcept override {
        return copy_in(block, slot, bytes, false);
    }

    int install_read_only(std::byte* block, std::byte* slot, size_t bytes,
                          bool* written) noexcept override {
        *written = false;
        return copy_in(block, slot, bytes, true);
    }

    int allow_writes(std::byte* block, size_t bytes) noexcept override {
        return userfault_.write_protect(block, bytes, false);
    }

    int withdraw(std::byte* block, std::byte* slot, size_t bytes) noexcept override {
        // A writer that is not stopped by the protection any more waits for the block's state.
        if (const int error = userfault_.write_protect(block, bytes, true); error != 0)
            return error;
        std::memcpy(slot, block, bytes);
        return sys::advise(block, bytes, MADV_DONTNEED);
    }

    void abandon_in_child() noexcept override { userfault_.close(); }

private:
    int copy_in(std::byte* block, std::byte* slot, size_t bytes, bool write_protected) noexcept {
        size_t copied = 0;
        const int error = userfault_.copy(block, slot, bytes, write_protected, &copied);
        if (error == 0) return sys::advise(slot, bytes, MADV_DONTNEED);
        // What was mapped may have been written to: take it back.
        if (copied > 0) withdraw(block, slot, copied);
        return error;
    }

    sys::Userfault userfault_;
};

}  // namespace

Result<std::unique_ptr<Engine>> open_sigbus_copy() {
    HANARE_TRY_ASSIGN(auto userfault, sys::Userfault::open(false));
    return std::make_unique<SigbusCopy>(std::move(userfault));
}

}  // namespace hanare::pager
