// SPDX-License-Identifier: Apache-2.0
//
// How fast a grid's file is: a part of it is read and written again with the same bytes.
#pragma once

#include "base/result.hpp"
#include "stencil/plan.hpp"
#include "stencil/storage.hpp"

namespace hanare::stencil {

Result<Speeds> measure_bandwidth(Storage& storage);

}  // namespace hanare::stencil
