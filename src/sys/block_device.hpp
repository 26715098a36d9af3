// SPDX-License-Identifier: Apache-2.0
//
// The block device below a directory: its transfer counters and the free room.  Counters are those
// of the whole device, whoever caused the traffic.  Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace hanare::sys {

struct DeviceBytes {
    uint64_t read = 0;
    uint64_t written = 0;
};

// "MAJOR:MINOR" of the device that holds `path`; NOT_FOUND where there is none (tmpfs, network,
// overlay).
Result<std::string> block_device_of(const std::string& path);
Result<DeviceBytes> block_device_bytes(const std::string& device);

// Room for an ordinary user's files.
Result<uint64_t> free_disk_bytes(const std::string& directory);

// Writes what the file system of `directory` has in the page cache, and returns when it is there.
Result<void> sync_file_system(const std::string& directory);

}  // namespace hanare::sys
