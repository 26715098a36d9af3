// SPDX-License-Identifier: Apache-2.0
#include "sys/network_namespace.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "sys/file.hpp"
#include "sys/text_file.hpp"

namespace hanare::sys {
namespace {

// The one user and the one group of a new user namespace.
Result<void> map_ids(uid_t user, gid_t group) {
    HANARE_TRY(write_text_file("/proc/self/setgroups", "deny"));
    HANARE_TRY(write_text_file("/proc/self/gid_map", "0 " + std::to_string(group) + " 1"));
    return write_text_file("/proc/self/uid_map", "0 " + std::to_string(user) + " 1");
}

// A user namespace.
bool are_ours(const FileDescriptor& users) {
    struct stat theirs = {};
    struct stat ours = {};
    return fstat(users.number(), &theirs) == 0 && stat("/proc/self/ns/user", &ours) == 0 &&
           theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

}  // namespace

Result<void> enter_own_network() {
    if (unshare(CLONE_NEWNET) == 0) return {};
    const uid_t user = geteuid();
    const gid_t group = getegid();
    if (errno == EPERM && unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0) {
        if (const auto mapped = map_ids(user, group); !mapped) {
            return fail(HANARE_STATUS_PERMISSION, "%s", mapped.error().text);
        }
        return {};
    }
    return fail_errno(HANARE_STATUS_PERMISSION, errno,
                      "cannot make a network of its own; it takes root, or user namespaces "
                      "(user.max_user_namespaces, kernel.unprivileged_userns_clone)");
}

Result<void> enter_network_of(pid_t process) {
    const std::string path = "/proc/" + std::to_string(process) + "/ns/";
    const FileDescriptor network(open((path + "net").c_str(), O_RDONLY | O_CLOEXEC));
    const FileDescriptor users(open((path + "user").c_str(), O_RDONLY | O_CLOEXEC));
    if (!network.is_open() || !users.is_open()) {
        return fail_errno(HANARE_STATUS_NOT_FOUND, errno, "the network of process %d",
                          static_cast<int>(process));
    }
    const bool is_entered = (are_ours(users) || setns(users.number(), CLONE_NEWUSER) == 0) &&
                            setns(network.number(), CLONE_NEWNET) == 0;
    if (is_entered) return {};
    return fail_errno(HANARE_STATUS_PERMISSION, errno, "cannot enter the network of process %d",
                      static_cast<int>(process));
}

}  // namespace hanare::sys
