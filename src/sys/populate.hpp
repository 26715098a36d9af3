// SPDX-License-Identifier: Apache-2.0
//
// Asking the kernel for the pages of a mapping before anybody touches them.
#pragma once

#include <cstddef>

namespace hanare::sys {

// Gives [address, address + bytes) its pages, ready to be written to; what is there stays as it is,
// also while others use it.  Returns 0 or an errno value: ENOMEM; EFAULT, a page cannot be had;
// EINVAL, a kernel before 5.14.  Some of the pages may be there then.
int populate(void* address, size_t bytes) noexcept;

}  // namespace hanare::sys
