// SPDX-License-Identifier: Apache-2.0
#include "sys/random.hpp"

#include <sys/random.h>

#include <cerrno>

namespace hanare::sys {

Result<void> fill_random(std::span<std::byte> memory) {
    while (!memory.empty()) {
        const ssize_t got = getrandom(memory.data(), memory.size(), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_errno(HANARE_STATUS_SYSTEM, errno, "no random numbers");
        memory = memory.subspan(static_cast<size_t>(got));
    }
    return {};
}

}  // namespace hanare::sys
