// SPDX-License-Identifier: Apache-2.0
//
// Memory that is good for being exposed: of a file without a name, so that
// tasks of this machine can have it itself, or UCX's.  A child of fork shares
// it with its parent.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "job/ucx_side.hpp"
#include "sys/file.hpp"
#include "sys/memory.hpp"

namespace hanare::job {

struct ExposableMemory {
    // Zero-filled.  INVALID_ARGUMENT, NO_MEMORY, SYSTEM.
    static Result<ExposableMemory> allocate(size_t bytes);
    // Of UCX, which lives longer.
    static Result<ExposableMemory> allocate_by_ucx(UcxSide& ucx, size_t bytes);

    std::span<std::byte> memory;
    sys::Mapping mapping;  // where it lies, if it is not UCX's
    // For who exposes all of it first: its file, or what it is to UCX.
    sys::FileDescriptor file;
    std::unique_ptr<fabric::UcxMemory> of_ucx;
};

}  // namespace hanare::job
