// SPDX-License-Identifier: Apache-2.0
#include "bench/room.hpp"

#include "base/units.hpp"
#include "sys/block_device.hpp"
#include "sys/file.hpp"
#include "sys/memory_limits.hpp"

namespace hanare::bench {
namespace {

constexpr uint64_t kLimitOverhead = 16 * kMiB;
constexpr uint64_t kFramesMin = 16;   // hanare_pool_options
constexpr uint64_t kTableBytes = 16;  // of a pool, per block

}  // namespace

uint64_t MachineRoom::usable_disk_bytes() const {
    return less_reserve(free_disk_bytes, kRoomReserve);
}

uint64_t MachineRoom::usable_memory_bytes() const {
    return less_reserve(available_memory_bytes, kRoomReserve);
}

Result<MachineRoom> machine_room(const std::string& directory) {
    MachineRoom room;
    room.file_bytes_max = sys::file_bytes_max();
    HANARE_TRY_ASSIGN(room.free_disk_bytes, sys::free_disk_bytes(directory));
    HANARE_TRY_ASSIGN(const sys::MemoryLimit limit, sys::effective_memory_limit());
    room.available_memory_bytes = limit.bytes;
    return room;
}

uint64_t hanare_budget_bytes(uint64_t limit_bytes) {
    return round_down(less_reserve(limit_bytes, limit_bytes / 20 + kLimitOverhead), kOsPageBytes);
}

uint64_t hanare_limit_min(uint64_t data_bytes, uint64_t block_bytes) {
    const uint64_t tables = data_bytes / block_bytes * kTableBytes;
    const uint64_t budget = 2 * kFramesMin * block_bytes + tables;
    return round_up((budget + kLimitOverhead) * 20 / 19 + kOsPageBytes, kMiB);
}

uint64_t scaled_bytes(uint64_t value, uint64_t numerator, uint64_t denominator) {
    const double share = static_cast<double>(numerator) / static_cast<double>(denominator);
    return round_down(static_cast<uint64_t>(static_cast<double>(value) * share), kMiB);
}

}  // namespace hanare::bench
