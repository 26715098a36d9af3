// SPDX-License-Identifier: Apache-2.0
#include "job/exposable_memory.hpp"

#include "base/units.hpp"
#include "sys/shared_memory.hpp"

namespace hanare::job {

Result<ExposableMemory> ExposableMemory::allocate(size_t bytes) {
    if (bytes == 0 || bytes > SIZE_MAX / 2) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "allocating %zu bytes", bytes);
    }
    HANARE_TRY_ASSIGN(sys::Mapping mapping,
                      sys::Mapping::reserve(round_up(bytes, kOsPageBytes), kOsPageBytes));
    HANARE_TRY_ASSIGN(sys::FileDescriptor file, sys::create_shared_memory(bytes));
    HANARE_TRY(sys::map_shared(mapping, file));
    return ExposableMemory{std::move(mapping), bytes, std::move(file)};
}

}  // namespace hanare::job
