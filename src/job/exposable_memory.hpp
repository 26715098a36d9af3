// SPDX-License-Identifier: Apache-2.0
//
// Memory that is good for being exposed: of a file without a name, so that
// tasks of this machine can have it itself.  A child of fork shares it with its
// parent.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.hpp"
#include "sys/file.hpp"
#include "sys/memory.hpp"

namespace hanare::job {

struct ExposableMemory {
    // Zero-filled.  INVALID_ARGUMENT, NO_MEMORY, SYSTEM.
    static Result<ExposableMemory> allocate(size_t bytes);

    std::span<std::byte> span() const noexcept { return {mapping.address(), bytes}; }

    sys::Mapping mapping;      // whole pages
    size_t bytes = 0;          // that were asked for, and that the file has
    sys::FileDescriptor file;  // for who exposes all of it first
};

}  // namespace hanare::job
