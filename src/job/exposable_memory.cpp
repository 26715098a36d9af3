// SPDX-License-Identifier: Apache-2.0
#include "job/exposable_memory.hpp"

#include "base/units.hpp"
#include "sys/shared_memory.hpp"

namespace hanare::job {
namespace {

Result<void> check_bytes(size_t bytes) {
    if (bytes != 0 && bytes <= SIZE_MAX / 2) return {};
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "allocating %zu bytes", bytes);
}

}  // namespace

Result<ExposableMemory> ExposableMemory::allocate(size_t bytes) {
    HANARE_TRY(check_bytes(bytes));
    ExposableMemory made;
    HANARE_TRY_ASSIGN(made.mapping,
                      sys::Mapping::reserve(round_up(bytes, kOsPageBytes), kOsPageBytes));
    HANARE_TRY_ASSIGN(made.file, sys::create_shared_memory(bytes));
    HANARE_TRY(sys::map_shared(made.mapping, made.file));
    made.memory = {made.mapping.address(), bytes};
    return made;
}

Result<ExposableMemory> ExposableMemory::allocate_by_ucx(UcxSide& ucx, size_t bytes) {
    HANARE_TRY(check_bytes(bytes));
    ExposableMemory made;
    HANARE_TRY_ASSIGN(made.of_ucx, ucx.allocate(bytes));
    made.memory = {made.of_ucx->address(), bytes};
    return made;
}

}  // namespace hanare::job
