// SPDX-License-Identifier: Apache-2.0
//
// The system calls that tasks have found in code (code.hpp): all tasks map the same libc, and to
// decode it takes longer than all else of their start.  In the root's memory, for all of them.  No
// libc that needs a thread's variables, no lock: who is killed while it adds some leaves a place
// that nobody uses.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

namespace hanare::space {

class KnownSites {
public:
    static constexpr size_t kSitesMax = 512;

    // Of a segment; what it is in is another one when it has been written to.
    struct Code {
        uint64_t device;
        uint64_t inode;
        uint64_t file_bytes;
        uint64_t written_ns;
        uint64_t changed_ns;
        uint64_t offset;
        uint64_t bytes;
        bool operator==(const Code&) const = default;
    };
    // As hook::SyscallSite, at an offset in the segment.
    struct Site {
        uint32_t offset;
        uint8_t before_bytes;
        uint8_t after_bytes;
        int32_t number;
    };

    static std::optional<std::span<const Site>> find(const Code& code) noexcept;
    // At most kSitesMax; not kept where there is no room for more.
    static void add(const Code& code, std::span<const Site> sites) noexcept;

private:
    static constexpr size_t kSegmentsMax = 256;
    static constexpr size_t kAllSitesMax = 16 * 1024;

    struct Segment {
        std::atomic<bool> is_there;
        Code code;
        std::span<const Site> sites;
    };
    inline static constinit std::array<Segment, kSegmentsMax> segments_ = {};
    inline static constinit std::atomic<size_t> taken_segments_{0};
    inline static constinit std::array<Site, kAllSitesMax> sites_ = {};
    inline static constinit std::atomic<size_t> taken_sites_{0};
};

}  // namespace hanare::space
