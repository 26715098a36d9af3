// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/shared.hpp"

#include <cerrno>
#include <sys/mman.h>

#include "base/assert.hpp"
#include "base/units.hpp"
#include "pager/fault/zeros.hpp"
#include "sys/memory.hpp"
#include "sys/shared_memory.hpp"

namespace hanare::pager {

namespace {
// Against a process that creates pages in holes as fast as they are punched.
constexpr uint32_t kForeignPagesMax = 10'000;

int make_hole(std::byte* memory, size_t bytes) noexcept {
    return sys::advise(memory, bytes, MADV_REMOVE);
}
}  // namespace

int Shared::attach(std::byte* range, size_t bytes) noexcept {
    return userfault_.register_range(range, bytes, sys::Userfault::kShared);
}

// Pages can be written as soon as they are there: after an error they hold what the slot lacks.
int Shared::install_writable(std::byte* block, std::byte* slot, size_t bytes,
                             FilePlace place) noexcept {
    size_t done = 0;
    const int error = copy_in(block, slot, bytes, false, &done);
    if (error != 0) take_back(block, slot, done, place);
    return error;
}

int Shared::install_zeros(std::byte* block, std::byte* slot, size_t bytes,
                          FilePlace place) noexcept {
    size_t done = 0;
    const int error = fill_pages(block, &done, [&](size_t* filled) {
        return userfault_.zero(block + done, bytes - done, filled);
    });
    if (error != 0) {
        fill_with_zeros(slot, bytes);  // also gives it pages to copy to
        take_back(block, slot, done, place);
    }
    return error;
}

void Shared::take_back(std::byte* block, std::byte* slot, size_t bytes, FilePlace place) noexcept {
    if (bytes == 0) return;
    const int error = withdraw(block, slot, bytes, place);
    HANARE_ASSERT(error == 0);
}

// Nothing can be written here, so after an error the slot has the content.
int Shared::install_read_only(std::byte* block, std::byte* slot, size_t bytes,
                              bool* written) noexcept {
    *written = false;
    size_t done = 0;
    const int error = copy_in(block, slot, bytes, true, &done);
    if (error != 0 && done > 0) make_hole(block, done);
    return error;
}

int Shared::copy_in(std::byte* block, const std::byte* slot, size_t bytes, bool write_protected,
                    size_t* done) noexcept {
    return fill_pages(block, done, [&](size_t* copied) {
        return userfault_.copy(block + *done, slot + *done, bytes - *done, write_protected, copied);
    });
}

// The step fills what is missing behind *done.
template <typename Step>
int Shared::fill_pages(std::byte* block, size_t* done, Step step) noexcept {
    int error = EEXIST;
    for (uint32_t tries = 0; error == EEXIST && tries < kForeignPagesMax; ++tries) {
        size_t filled = 0;
        error = step(&filled);
        *done += filled;
        if (error != EEXIST) continue;
        // Somebody else's page of zeros.
        const int hole_error = make_hole(block + *done, kOsPageBytes);
        if (hole_error != 0) error = hole_error;
    }
    return error;
}

// The kernel leaves the pages of a file write-protected until each is written to, by a fault of its
// own: they are made writable at once.  A page that it has unmapped stays so until it is touched.
int Shared::allow_writes(std::byte* block, size_t bytes) noexcept {
    if (const int error = userfault_.write_protect(block, bytes, false); error != 0) return error;
    sys::advise(block, bytes, MADV_POPULATE_WRITE);
    return 0;
}

int Shared::withdraw(std::byte* block, std::byte* slot, size_t bytes, FilePlace place) noexcept {
    if (const int error = userfault_.write_protect(block, bytes, true); error != 0) return error;
    // From the file: a page that the kernel has unmapped would be a fault.
    if (const int error = sys::copy_from_file(place.file, place.offset, slot, bytes); error != 0) {
        return error;
    }
    const int error = make_hole(block, bytes);
    HANARE_ASSERT(error == 0);
    return 0;
}

int Shared::discard(std::byte* block, size_t bytes) noexcept { return make_hole(block, bytes); }

int Shared::map_again(std::byte* block, size_t bytes, bool* writable) noexcept {
    for (size_t done = 0; done < bytes; done += kOsPageBytes) {
        int error = userfault_.map_present(block + done, kOsPageBytes, !*writable);
        if (error == EINVAL && !*writable) {
            // Before Linux 6.4 there is no protection in the same step.
            *writable = true;
            error = userfault_.map_present(block + done, kOsPageBytes, false);
        }
        if (error != 0 && error != EEXIST) return error;
    }
    return *writable ? allow_writes(block, bytes) : 0;
}

int Shared::drop(std::byte* range, size_t bytes) noexcept { return make_hole(range, bytes); }

}  // namespace hanare::pager
