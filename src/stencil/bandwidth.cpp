// SPDX-License-Identifier: Apache-2.0
#include "stencil/bandwidth.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "stencil/transfers.hpp"
#include "sys/clock.hpp"
#include "sys/memory.hpp"

namespace hanare::stencil {

namespace {

constexpr size_t kTransferBytes = kMiB;
constexpr size_t kTransfers = 64;
constexpr size_t kAtOnce = 8;

// Bytes per second of all transfers one way.
Result<double> measure(Transfers& transfers, std::byte* memory, size_t count, bool writes) {
    const uint64_t begin_ns = sys::now_ns();
    size_t started = 0;
    for (size_t ended = 0; ended < count;) {
        for (; started < count && started - ended < kAtOnce; ++started) {
            transfers.start({writes, kHeaderBytes + started * kTransferBytes,
                             memory + started * kTransferBytes, kTransferBytes, started});
        }
        Transfers::Completion completion;
        if (!transfers.collect(completion, true)) continue;
        ++ended;
        if (completion.error != 0) {
            return fail_errno(HANARE_STATUS_STORE_IO, completion.error, "cannot %s the grid's file",
                              writes ? "write" : "read");
        }
    }
    const double seconds = static_cast<double>(sys::now_ns() - begin_ns) * 1e-9;
    return static_cast<double>(count * kTransferBytes) / std::max(seconds, 1e-6);
}

}  // namespace

Result<Speeds> measure_bandwidth(const Storage& storage, size_t memory_bytes) {
    const size_t count = std::min<size_t>({kTransfers, memory_bytes / kTransferBytes,
                                           (storage.file_bytes() - kHeaderBytes) / kTransferBytes});
    Speeds speeds = {2.0e9, 2.0e9, 0};
    if (count < kAtOnce) return speeds;  // too short to say
    HANARE_TRY_ASSIGN(const auto memory,
                      sys::Mapping::reserve(count * kTransferBytes, kHugePageBytes));
    HANARE_TRY_ASSIGN(auto transfers, Transfers::make(storage));
    HANARE_TRY_ASSIGN(speeds.read_bytes_per_s, measure(*transfers, memory.address(), count, false));
    speeds.write_bytes_per_s = speeds.read_bytes_per_s;
    if (storage.is_read_only()) return speeds;
    HANARE_TRY_ASSIGN(speeds.write_bytes_per_s, measure(*transfers, memory.address(), count, true));
    return speeds;
}

}  // namespace hanare::stencil
