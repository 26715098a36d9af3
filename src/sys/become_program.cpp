// SPDX-License-Identifier: Apache-2.0
#include "sys/become_program.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>

namespace hanare::sys {

Error become_program(const std::vector<std::string>& arguments, int signal_at_parents_end) {
    std::vector<char*> pointers;
    for (const std::string& text : arguments) pointers.push_back(const_cast<char*>(text.c_str()));
    pointers.push_back(nullptr);
    const pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, signal_at_parents_end);
    if (getppid() != parent) {  // it has ended before
        return fail(HANARE_STATUS_PEER_LOST, "the process that has started this one has ended")
            .error();
    }
    execv(pointers[0], pointers.data());
    return fail_errno(HANARE_STATUS_NOT_FOUND, errno, "cannot run %s", pointers[0]).error();
}

}  // namespace hanare::sys
