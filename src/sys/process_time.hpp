// SPDX-License-Identifier: Apache-2.0
//
// Processor time of whole processes, as the scheduler has counted it.  Any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/result.hpp"

namespace hanare::sys {

// Of all threads of the process so far, in user and system mode; the caller's own has number 0.
Result<uint64_t> processor_ns(pid_t process);

}  // namespace hanare::sys
