// SPDX-License-Identifier: Apache-2.0
#include "sys/clock.hpp"

#include <ctime>

namespace hanare::sys {

uint64_t now_ns() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace hanare::sys
