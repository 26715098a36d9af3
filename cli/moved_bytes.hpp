// SPDX-License-Identifier: Apache-2.0
//
// What a memory has moved from and to the place where its absent parts live.  Used by one thread.
#pragma once

#include <string>

#include "base/result.hpp"
#include "bench/memory.hpp"
#include "sys/block_device.hpp"

namespace hanare::cli {

enum class Backing {
    kNone,
    kDevice,  // the whole block device counts, whoever uses it
    kSwap,    // system-wide
    kStore,   // Hanare's own counters
};

// `device` is for kDevice; zeros where it is empty.
Result<sys::DeviceBytes> moved_bytes(Backing backing, const std::string& device,
                                     bench::Memory& memory);

}  // namespace hanare::cli
