// SPDX-License-Identifier: Apache-2.0
#include "sys/timed_program.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "sys/child.hpp"

namespace hanare::sys {

Result<double> time_program_us(const std::vector<std::string>& arguments) {
    std::vector<char*> pointers;
    for (const std::string& text : arguments) pointers.push_back(const_cast<char*>(text.c_str()));
    pointers.push_back(nullptr);
    const auto start = std::chrono::steady_clock::now();
    pid_t child = -1;
    if (const int error =
            posix_spawn(&child, pointers[0], nullptr, nullptr, pointers.data(), environ);
        error != 0) {
        return fail_errno(HANARE_STATUS_SYSTEM, error, "cannot run %s", pointers[0]);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    const auto elapsed = std::chrono::steady_clock::now() - start;
    if (status != 0) {
        return fail(HANARE_STATUS_INTERNAL, "%s ended with %s", pointers[0],
                    describe_wait_status(status).c_str());
    }
    return std::chrono::duration<double, std::micro>(elapsed).count();
}

}  // namespace hanare::sys
