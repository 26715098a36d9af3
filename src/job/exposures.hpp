// SPDX-License-Identifier: Apache-2.0
//
// Exposures: the memory that the program exposes, who else still needs it, and
// memory that was made to be exposed.  Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "base/result.hpp"
#include "fabric/exposed_regions.hpp"
#include "job/exposable_memory.hpp"
#include "job/ucx_side.hpp"

namespace hanare::job {

class Exposures {
public:
    Exposures() = default;
    ~Exposures();
    Exposures(const Exposures&) = delete;
    Exposures& operator=(const Exposures&) = delete;

    // From now on memory is allocated so that others reach it by UCX.  Once,
    // before anything is allocated.  NOT_SUPPORTED.
    Result<void> use_ucx();
    // Null: it is not used.
    UcxSide* ucx() noexcept { return ucx_.get(); }

    // Zero-filled, in whole pages.  INVALID_ARGUMENT, NO_MEMORY.
    Result<std::span<std::byte>> allocate(size_t bytes);
    // What allocate() gave.  NOT_FOUND; BUSY: some of it is exposed.
    Result<void> free(const void* address);

    // As in fabric::ExposedRegions.
    Result<uint32_t> expose(std::span<std::byte> memory, fabric::Rights rights);
    Result<fabric::Capability> capability(uint32_t region, fabric::Rights rights) const;
    Result<void> revoke(uint32_t region);
    // Also BUSY: somebody holds it.
    Result<void> conceal(uint32_t region);

    // Keeps the region exposed until release(), and says where it is.
    Result<std::span<std::byte>> hold(uint32_t region);
    void release(uint32_t region) noexcept;

    fabric::ExposedRegions& regions() noexcept { return regions_; }

private:
    struct Exposure {
        std::span<std::byte> memory;
        uint32_t holders = 0;
        std::unique_ptr<fabric::UcxMemory> of_ucx = nullptr;  // exposed by UCX, too
    };
    Result<ExposableMemory> make(size_t bytes);
    Result<void> check_exposed(uint32_t region) const;
    void forget(uint32_t region, sys::FileDescriptor file);

    fabric::ExposedRegions regions_;
    std::unique_ptr<UcxSide> ucx_;
    mutable std::mutex lock_;
    std::map<uint32_t, Exposure> exposed_;                   // under lock_
    std::map<const std::byte*, ExposableMemory> allocated_;  // under lock_
};

}  // namespace hanare::job
