// SPDX-License-Identifier: Apache-2.0
//
// Identity: user, groups and capabilities.  To the kernel each thread has its own; libc makes those
// of its threads change theirs together, and this is for those that libc does not know.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace hanare::sys {

class Identity {
public:
    // That of the calling thread.  Async-signal-safe.
    void take_from_caller() noexcept;
    // As far as the calling thread is allowed to: always, when that is less than it has.
    // Async-signal-safe.
    void give_to_caller() const noexcept;

private:
    static constexpr size_t kGroupsMax = 65'536;  // the kernel's

    std::array<uint32_t, 3> users_{};  // real, effective, saved
    std::array<uint32_t, 3> groups_{};
    int64_t others_count_ = -1;
    std::array<uint32_t, kGroupsMax> others_{};
    bool has_capabilities_ = false;
    std::array<uint32_t, 6> capabilities_{};  // effective, permitted, inheritable; and once more
};

}  // namespace hanare::sys
