// SPDX-License-Identifier: Apache-2.0
//
// What the device below a directory can move: large sequential O_DIRECT transfers, several at a
// time, in a nameless temporary file.  Called by one thread; starts threads of its own and joins
// them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.hpp"

namespace hanare::bench {

struct DeviceProbeOptions {
    std::string directory;
    uint64_t file_bytes = 512u << 20;
    uint64_t transfer_bytes = 1u << 20;
    int depth = 8;   // transfers in flight
    int passes = 3;  // over the file, per direction; the median counts
};

struct DeviceBandwidth {
    double read_bytes_per_s = 0;
    double write_bytes_per_s = 0;
    // The time that moving so much takes at these rates.
    double seconds_for(uint64_t read_bytes, uint64_t written_bytes) const;
};

// Fails where O_DIRECT is refused: through the page cache it would measure memory.  `stop` ends it
// early with BUSY.
Result<DeviceBandwidth> probe_device(const DeviceProbeOptions& options,
                                     const std::function<bool()>& stop);

}  // namespace hanare::bench
