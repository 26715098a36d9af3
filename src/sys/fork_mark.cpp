// SPDX-License-Identifier: Apache-2.0
#include "sys/fork_mark.hpp"

#include <new>
#include <sys/mman.h>

#include "base/units.hpp"

namespace hanare::sys {

Result<ForkMark> ForkMark::make() {
    HANARE_TRY_ASSIGN(Mapping page, Mapping::reserve(kOsPageBytes, kOsPageBytes));
    const int error = page.advise(MADV_WIPEONFORK);
    if (error == 0) return ForkMark(std::move(page));
    return fail_errno(HANARE_STATUS_SYSTEM, error, "madvise(MADV_WIPEONFORK) of a page");
}

ForkMark::ForkMark(Mapping page) noexcept
    : page_(std::move(page)), word_(new(page_.address()) std::atomic<uint32_t>(1)) {}

}  // namespace hanare::sys
