// SPDX-License-Identifier: Apache-2.0
//
// How fast a grid's file is: a part of it is read and written again with the same bytes.  A file
// that was opened for reading is only read, and counted as fast for writes.
#pragma once

#include "base/result.hpp"
#include "stencil/plan.hpp"
#include "stencil/storage.hpp"

namespace hanare::stencil {

Result<Speeds> measure_bandwidth(const Storage& storage, size_t memory_bytes);

}  // namespace hanare::stencil
