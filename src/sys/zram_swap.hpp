// SPDX-License-Identifier: Apache-2.0
//
// Swap on a compressed memory device (zram) of our own, which lives as long as its object.  The
// memory of the device is charged to no cgroup.  A locked note in a directory remembers the device,
// so that one left behind by a killed process is recognised and removed.  Needs CAP_SYS_ADMIN.
// Objects are used by one thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "sys/guardian.hpp"

namespace hanare::sys {

class ZramSwap {
public:
    // Adds a device that takes `bytes` of pages, and turns it on with the highest priority.
    // NOT_SUPPORTED without the module, PERMISSION for ordinary users.
    // The guardian, if there is one, outlives the object and undoes this if we cannot.
    static Result<ZramSwap> create(const std::string& note_directory, uint64_t bytes,
                                   Guardian* guardian = nullptr);

    ZramSwap(ZramSwap&& other) noexcept;
    ZramSwap& operator=(ZramSwap&& other) noexcept;
    ~ZramSwap();

    const std::string& path() const { return path_; }
    // The most memory that the device has held so far.
    Result<uint64_t> peak_bytes() const;
    // Turns it off, which brings back what is in it, and removes the device.
    Result<void> remove();

private:
    ZramSwap() = default;

    Result<void> remember(const std::string& directory);

    Guardian* guardian_ = nullptr;
    int note_fd_ = -1;
    std::string note_;
    bool on_ = false;
    std::string path_;  // /dev/zramN, empty while there is none
};

// Removes /dev/zramN, on which swap is off.
Result<void> remove_zram_device(const std::string& path);

// Turns off and removes the devices whose notes killed processes of this user left in `directory`;
// returns how many.
int remove_stale_zram_swap(const std::string& directory);

}  // namespace hanare::sys
