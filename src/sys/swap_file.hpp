// SPDX-License-Identifier: Apache-2.0
//
// A swap file that lives as long as its object.  Swap is system-wide: while it is on, any process
// may be paged to it.  The file keeps its name while it is on, because only a name lets somebody
// else turn it off; its owner holds a lock (flock) on it, so that one left behind by a killed
// process is recognised and removed.  Needs CAP_SYS_ADMIN.  Objects are used by one thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "sys/guardian.hpp"

namespace hanare::sys {

class SwapFile {
public:
    // Creates DIRECTORY/hanare-PID.swap and turns it on with the highest priority.
    // The guardian, if there is one, outlives the object and undoes this if we cannot.
    static Result<SwapFile> create(const std::string& directory, uint64_t bytes,
                                   Guardian* guardian = nullptr);

    SwapFile(SwapFile&& other) noexcept;
    SwapFile& operator=(SwapFile&& other) noexcept;
    ~SwapFile();

    const std::string& path() const { return path_; }
    // Turns it off, which brings back what is in it and may take seconds, and deletes the file.
    Result<void> remove();

private:
    SwapFile() = default;

    int fd_ = -1;
    bool on_ = false;
    Guardian* guardian_ = nullptr;
    std::string path_;
};

// What mkswap writes to the file or device, all of whose `bytes` then are swap.
Result<void> write_swap_header(int file, uint64_t bytes);

struct SwapTraffic {
    uint64_t read_bytes = 0;
    uint64_t written_bytes = 0;
};

// What all processes together have moved from and to swap since boot.
Result<SwapTraffic> swap_traffic();

// Turns off and deletes the swap files that killed processes of this user left in `directory`;
// returns how many.
int remove_stale_swap_files(const std::string& directory);

}  // namespace hanare::sys
