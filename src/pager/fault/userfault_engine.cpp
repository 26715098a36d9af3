// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/userfault_engine.hpp"

#include <cerrno>
#include <sys/mman.h>

#include "base/units.hpp"
#include "sys/memory.hpp"

namespace hanare::pager {

int UserfaultEngine::attach(std::byte* range, size_t bytes) noexcept {
    return userfault_.register_range(range, bytes);
}

int UserfaultEngine::become_child() noexcept {
    auto again = sys::Userfault::open(features_);
    if (!again) return again.error().os_errno != 0 ? again.error().os_errno : ENOSYS;
    userfault_ = std::move(*again);
    return 0;
}

int UserfaultEngine::discard(std::byte* pages, size_t bytes) noexcept {
    return sys::advise(pages, bytes, MADV_DONTNEED);
}

int UserfaultEngine::allow_writes(std::byte* pages, size_t bytes) noexcept {
    return userfault_.write_protect(pages, bytes, false);
}

// To several mappings at once, of which a block may consist where the program has had a file, the
// kernel copies nothing.
int UserfaultEngine::copy(std::byte* target, const std::byte* content, size_t bytes,
                          bool write_protected, size_t* copied) noexcept {
    int error = userfault_.copy(target, content, bytes, write_protected, copied);
    if (error != ENOENT && error != EINVAL) return error;
    error = 0;
    while (*copied < bytes && error == 0) {
        size_t more = 0;
        error = userfault_.copy(target + *copied, content + *copied, kOsPageBytes, write_protected,
                                &more);
        *copied += more;
    }
    return error;
}

int UserfaultEngine::install_part(std::byte* part, const std::byte* content, size_t bytes,
                                  bool writable) noexcept {
    // Of several pages none may be written while the others are missing: there may be no others.
    const bool write_protected = !writable || bytes > kOsPageBytes;
    size_t copied = 0;
    int error = copy(part, content, bytes, write_protected, &copied);
    if (error == 0 && writable && write_protected) error = allow_writes(part, bytes);
    if (error != 0 && copied > 0) discard(part, copied);
    return error;
}

int UserfaultEngine::fill(std::byte* slot, const std::byte* content, size_t bytes) noexcept {
    size_t copied = 0;
    const int error = userfault_.copy(slot, content, bytes, false, &copied);
    if (error != 0 && copied > 0) discard(slot, copied);
    return error;
}

int UserfaultEngine::forbid_writes(std::byte* pages, size_t bytes) noexcept {
    return userfault_.write_protect(pages, bytes, true);
}

}  // namespace hanare::pager
