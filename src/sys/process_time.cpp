// SPDX-License-Identifier: Apache-2.0
#include "sys/process_time.hpp"

#include <time.h>

#include <cerrno>

namespace hanare::sys {

Result<uint64_t> processor_ns(pid_t process) {
    constexpr uint64_t kNsPerSecond = 1'000'000'000;
    clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;
    int error = clock_getcpuclockid(process, &clock);
    timespec time = {};
    if (error == 0 && clock_gettime(clock, &time) != 0) error = errno;
    if (error != 0) {
        return fail_errno(HANARE_STATUS_NOT_FOUND, error, "processor time of process %d", process);
    }
    return static_cast<uint64_t>(time.tv_sec) * kNsPerSecond + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace hanare::sys
