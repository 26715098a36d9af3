// SPDX-License-Identifier: Apache-2.0
#include "cli/moved_bytes.hpp"

#include "sys/swap_file.hpp"

namespace hanare::cli {

Result<sys::DeviceBytes> moved_bytes(Backing backing, const std::string& device,
                                     bench::Memory& memory) {
    switch (backing) {
        case Backing::kNone: break;
        case Backing::kDevice:
            if (!device.empty()) return sys::block_device_bytes(device);
            break;
        case Backing::kSwap: {
            HANARE_TRY_ASSIGN(const sys::SwapTraffic traffic, sys::swap_traffic());
            return sys::DeviceBytes{traffic.read_bytes, traffic.written_bytes};
        }
        case Backing::kStore: {
            HANARE_TRY_ASSIGN(const hanare_counters counters, memory.counters());
            return sys::DeviceBytes{counters.read_bytes, counters.written_bytes};
        }
    }
    return sys::DeviceBytes{};
}

}  // namespace hanare::cli
