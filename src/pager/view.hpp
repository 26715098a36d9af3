// SPDX-License-Identifier: Apache-2.0
//
// Views: mapping a region that another process has exported (engine shared), for reading.  What is
// not in the other's local memory is guarded by userfaultfd, so that an access raises SIGBUS
// instead of creating zeros.  Normal context; any thread may call them.
#pragma once

#include <cstddef>

#include "base/result.hpp"

namespace hanare::pager {

struct ViewRange {
    const std::byte* address;
    size_t bytes;
};

// The descriptor stays the caller's.
Result<ViewRange> open_view(int descriptor);
// NOT_FOUND unless it is the address of an open view.
Result<void> close_view(const void* address);

}  // namespace hanare::pager
