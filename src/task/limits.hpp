// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace hanare::task {

// Of one space.
inline constexpr uint32_t kTasksMax = 1024;

}  // namespace hanare::task
